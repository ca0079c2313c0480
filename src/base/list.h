/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intrusive doubly linked list. An element holds a struct list; so does the owner, as head.
 * An element not on any list is linked to itself, so that removing it twice does no harm.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next;
    struct list *prev;
};

/* The object of |type| whose |member| is at |pointer|. */
#define CONTAINER_OF(pointer, type, member)                                                        \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static inline void list_init(struct list *l)
{
    l->next = l;
    l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_insert_before(struct list *at, struct list *element)
{
    element->prev = at->prev;
    element->next = at;
    at->prev->next = element;
    at->prev = element;
}

static inline void list_push_back(struct list *head, struct list *element)
{
    list_insert_before(head, element);
}

static inline void list_push_front(struct list *head, struct list *element)
{
    list_insert_before(head->next, element);
}

static inline void list_remove(struct list *element)
{
    element->prev->next = element->next;
    element->next->prev = element->prev;
    list_init(element);
}

/* The first element, off the list; NULL where it is empty. */
static inline struct list *list_pop_front(struct list *head)
{
    struct list *first = head->next;

    if (first == head)
        return NULL;
    list_remove(first);
    return first;
}

#endif
