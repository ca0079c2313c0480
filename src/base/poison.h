/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the address sanitizer which bytes nobody may touch now: those an arena has not handed out
 * and those of objects a slab keeps. Costs nothing, and says nothing, in a plain build.
 */
#ifndef BASE_POISON_H
#define BASE_POISON_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size)   ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

static inline void poison(const void *from, size_t size)
{
    ASAN_POISON_MEMORY_REGION(from, size);
}

static inline void unpoison(const void *from, size_t size)
{
    ASAN_UNPOISON_MEMORY_REGION(from, size);
}

#endif
