/* SPDX-License-Identifier: Apache-2.0 */
/* Asks every trap about every part of a configuration, and keeps what they find. */
#include "control/lint.h"

#include <stdio.h>
#include <string.h>

#include "control/lint_trap.h"

/* Room for what one trap says; longer is cut. */
#define WORDS_MAX 1024

const char *lint_severity_text(enum lint_severity s)
{
    static const char *const texts[LINT_SEVERITY_COUNT] = {
        [LINT_ADVICE] = "advice", [LINT_WARNING] = "warning", [LINT_DANGER] = "danger"};

    return texts[s];
}

const char *lint_trap_id(uint32_t i)
{
    return lint_traps[i].id;
}

uint32_t lint_count(const struct lint *l)
{
    uint32_t count = 0;

    for (unsigned i = 0; i < LINT_SEVERITY_COUNT; i++)
        count += l->counts[i];
    return count;
}

/* --- for the traps --- */

void lint_say(struct text *t, const char *format, ...)
{
    char room[WORDS_MAX];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(room, sizeof(room), format, args);
    va_end(args);
    if (n > 0)
        text_put(t, bytes_of(room));
}

struct lint_span lint_span(span_ns span)
{
    struct lint_span s;
    struct text t;

    text_init(&t, s.text, sizeof(s.text));
    text_duration(&t, span);
    text_end(&t);
    return s;
}

const struct config_node *lint_at(const struct config_node *map, const char *key)
{
    const struct config_node *found = config_node_find(map, key);

    if (found != NULL)
        return found->key;
    return map != NULL && map->key != NULL ? map->key : map;
}

bool lint_written(const struct config_node *map, const char *key)
{
    const struct config_node *found = config_node_find(map, key);

    return found != NULL && !config_node_empty(found);
}

bool lint_written_zero(const struct config_node *map, const char *key)
{
    const struct config_node *found = config_node_find(map, key);

    return found != NULL && found->kind == CONFIG_TEXT && bytes_equal(found->text, BYTES("0"));
}

uint32_t lint_hosts(const struct lint_subject *s)
{
    const struct cluster *c = s->cluster;

    for (uint32_t i = 0; i < c->endpoint_count; i++)
        if (!bytes_equal(c->endpoints[i].hostname, c->endpoints[i].text))
            return 0;
    return c->endpoint_count;
}

uint32_t lint_share(uint32_t whole, uint32_t part)
{
    return part == 0 ? 0 : (uint32_t)((UINT64_C(100) * whole + part / 2) / part);
}

/* --- keeping what was found --- */

static struct bytes keep(struct lint *l, struct bytes text)
{
    struct bytes copy = arena_copy(&l->arena, text);

    if (text.len > 0 && copy.data == NULL)
        l->no_memory = true;
    return copy;
}

/* "cluster 'a'", "route 2 of listener 'web'". */
static struct bytes describe(struct lint *l, const struct lint_subject *s)
{
    char room[512];
    struct text t;

    text_init(&t, room, sizeof(room));
    if (s->route != NULL) {
        lint_say(&t, "route %u of listener ", s->index + 1);
        config_quote(&t, s->listener->name);
    } else if (s->cluster != NULL) {
        text_str(&t, "cluster ");
        config_quote(&t, s->cluster->name);
    }
    return keep(l, text_bytes(&t));
}

/* The line and its caret, as an error would show them. */
static struct config_error locate(struct lint *l, const struct config_node *at)
{
    struct config_error place;

    config_errors_at(&l->places, at->source);
    config_error_begin(&l->places, at->line, at->column);
    config_error_end(&l->places);
    place = l->places.at[0];
    l->places.count = 0;
    return place;
}

static bool is_before(const struct config_error *a, const struct config_error *b)
{
    if (a->source != b->source)
        return a->source < b->source;
    return a->line != b->line ? a->line < b->line : a->column < b->column;
}

/* In its place by the order of the file; those of one place stay in the order of the table. */
static struct lint_finding *insert(struct lint *l, const struct config_error *place)
{
    uint32_t at = l->kept++;

    for (; at > 0 && is_before(place, &l->findings[at - 1].place); at--)
        l->findings[at] = l->findings[at - 1];
    l->findings[at] = (struct lint_finding){.place = *place};
    return &l->findings[at];
}

/* --- acceptance --- */

static const struct config_accept *accepted_in(const struct field_items *list, const char *id)
{
    const struct config_accept *each = list->at;

    for (uint32_t i = 0; i < list->count; i++)
        if (bytes_equal(bytes_of(lint_trap_id(each[i].trap)), bytes_of(id)))
            return &each[i];
    return NULL;
}

/* Nearest first: the route's own list, the cluster's, the file's. */
static const struct config_accept *accepted(const struct lint_subject *s, const char *id)
{
    const struct config_accept *found = NULL;

    if (s->route_written != NULL)
        found = accepted_in(&s->route_written->accept, id);
    if (found == NULL && s->cluster_written != NULL)
        found = accepted_in(&s->cluster_written->resilience.accept, id);
    return found != NULL ? found : accepted_in(&s->file->accept, id);
}

/* A place that is several clusters' names the one that is meant. */
static struct bytes why_of(struct lint *l, const struct lint_subject *s, const struct lint_words *w)
{
    char room[WORDS_MAX + 128];
    struct text t;

    if (s->route != NULL || s->cluster_written == NULL || s->cluster_written->subset == NULL)
        return keep(l, text_bytes(&w->why));
    text_init(&t, room, sizeof(room));
    lint_say(&t, "of subset '%.*s', ", (int)s->cluster_written->subset->name.len,
             (const char *)s->cluster_written->subset->name.data);
    text_put(&t, text_bytes(&w->why));
    return keep(l, text_bytes(&t));
}

static void add(struct lint *l, const struct lint_trap *trap, const struct lint_subject *s,
                const struct config_node *at, const struct lint_words *w)
{
    const struct config_accept *yes = accepted(s, trap->id);
    struct lint_finding *f;
    struct config_error place;

    if (yes != NULL)
        l->accepted++;
    else
        l->counts[trap->severity]++;
    if (l->kept == LINT_FINDINGS_MAX)
        return;
    place = locate(l, at);
    f = insert(l, &place);
    f->trap = trap->id;
    f->severity = trap->severity;
    f->about = describe(l, s);
    f->why = why_of(l, s, w);
    f->instead = keep(l, text_bytes(&w->instead));
    f->file = l->places.sources[place.source].name;
    f->accepted = yes != NULL;
    f->reason = yes != NULL ? keep(l, yes->reason) : BYTES_NONE;
}

/* --- asking --- */

static void ask(struct lint *l, enum lint_scope scope, const struct lint_subject *s)
{
    char why[WORDS_MAX], instead[WORDS_MAX];

    for (const struct lint_trap *trap = lint_traps; trap->id != NULL; trap++) {
        const struct config_node *at;
        struct lint_words w;

        if (trap->scope != scope || trap->find == NULL)
            continue;
        text_init(&w.why, why, sizeof(why));
        text_init(&w.instead, instead, sizeof(instead));
        at = trap->find(s, &w);
        if (at != NULL)
            add(l, trap, s, at, &w);
    }
}

static const struct cluster *find_cluster(const struct snapshot *snapshot, struct bytes name)
{
    for (uint32_t i = 0; snapshot != NULL && i < snapshot->cluster_count; i++)
        if (bytes_equal(snapshot->clusters[i].name, name))
            return &snapshot->clusters[i];
    return NULL;
}

static void ask_routes(struct lint *l, struct lint_subject s, uint32_t listener)
{
    const struct config_cluster *clusters = s.file->clusters.at;
    const struct config_route *routes;

    s.listener = &s.snapshot->listeners[listener];
    s.listener_written = (const struct config_listener *)s.file->listeners.at + listener;
    routes = s.listener_written->routes.at;
    for (uint32_t i = 0; i < s.listener->route_count; i++) {
        s.index = i;
        s.route = &s.listener->routes[i];
        s.route_written = &routes[i];
        s.cluster = &s.snapshot->clusters[s.route->cluster];
        s.cluster_written = &clusters[s.route->cluster];
        ask(l, LINT_ROUTE, &s);
    }
}

static void ask_clusters(struct lint *l, struct lint_subject s, const struct snapshot *before)
{
    const struct config_cluster *clusters = s.file->clusters.at;

    for (uint32_t i = 0; i < s.snapshot->cluster_count; i++) {
        s.index = i;
        s.cluster = &s.snapshot->clusters[i];
        s.cluster_written = &clusters[i];
        s.before = find_cluster(before, s.cluster->name);
        ask(l, LINT_CLUSTER, &s);
    }
}

/* What the loader said is shown with the rest, and can be accepted like it. */
static void import_warnings(struct lint *l, const struct lint_subject *s,
                            const struct config_errors *errors)
{
    const struct lint_trap *trap = lint_traps; /* its first row */

    for (uint32_t i = 0; i < errors->warning_count; i++) {
        const struct config_error *e = &errors->warnings[i];
        const struct config_node at = {.source = e->source, .line = e->line, .column = e->column};
        struct lint_words w = {.instead = {.len = 0}};

        w.why = (struct text){.data = (char *)(uintptr_t)e->message.data, .len = e->message.len};
        add(l, trap, s, &at, &w);
    }
}

/* --- what was there before --- */

static uint64_t hash_of(const struct lint_finding *f)
{
    uint64_t parts[] = {bytes_hash(bytes_of(f->trap)), bytes_hash(f->about), bytes_hash(f->why)};

    return bytes_hash(bytes_from(parts, sizeof(parts)));
}

static bool knows(const struct snapshot *s, uint64_t hash)
{
    for (uint32_t i = 0; i < s->trap_count; i++)
        if (s->traps[i] == hash)
            return true;
    return false;
}

static void recognize(struct lint *l, const struct snapshot *before)
{
    for (uint32_t i = 0; before != NULL && i < l->kept; i++)
        l->findings[i].known = knows(before, hash_of(&l->findings[i]));
}

/* Where there is no memory for it, the next reload says it all again. */
void lint_remember(const struct lint *l, struct snapshot *s)
{
    uint64_t *traps = arena_take(&s->arena, (l->kept + (size_t)1) * sizeof(*traps));

    s->traps = traps;
    s->trap_count = 0;
    for (uint32_t i = 0; traps != NULL && i < l->kept; i++)
        if (!l->findings[i].accepted)
            traps[s->trap_count++] = hash_of(&l->findings[i]);
}

void lint_run(struct lint *l, const struct config_loaded *loaded, const struct snapshot *snapshot,
              const struct snapshot *before)
{
    struct lint_subject s = {.snapshot = snapshot, .file = loaded->file};
    const struct config_errors *errors = loaded->errors;

    l->findings = arena_take(&l->arena, LINT_FINDINGS_MAX * sizeof(*l->findings));
    if (l->findings == NULL) {
        l->no_memory = true;
        return;
    }
    for (uint32_t i = 0; i < errors->source_count; i++)
        config_errors_open(&l->places, errors->sources[i].name, errors->sources[i].text);
    import_warnings(l, &s, errors);
    ask(l, LINT_FILE, &s);
    for (uint32_t i = 0; i < snapshot->listener_count; i++)
        ask_routes(l, s, i);
    ask_clusters(l, s, before);
    recognize(l, before);
    config_errors_close(&l->places);
}

int lint_load(struct lint *l, const struct lint_load *load, struct config_errors *errors,
              struct snapshot **out)
{
    struct config_loaded loaded;
    int status = config_open(&loaded, load->paths, load->count, load->files, errors);

    config_follow(&loaded, load->follow);
    if (status == CONFIG_OK)
        status = config_compile(&loaded, load->resolver, out);
    if (status == CONFIG_OK) {
        lint_run(l, &loaded, *out, load->before);
        lint_remember(l, *out);
    }
    config_close(&loaded);
    return status;
}

void lint_init(struct lint *l)
{
    memset(l, 0, sizeof(*l));
    arena_init(&l->arena, 4096, SIZE_MAX);
    config_errors_init(&l->places);
}

void lint_release(struct lint *l)
{
    arena_release(&l->arena);
    config_errors_release(&l->places);
    lint_init(l);
}
