/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of Istio's DestinationRule, and of those parts of trafficPolicy that are about where
 * requests go (reference/envoy-semantics.md 8.1, 8.4, 8.5).
 */
#include "control/config_schema.h"

/* Of a name in DNS, and in Kubernetes. */
#define LABEL_MAX 63

#define AT(member) offsetof(struct config_locality, member)
static const char *const off[] = {"false", "off", NULL};
static const char *const later_on[] = {"true", "zones", "on", "zones", NULL};

static const struct field locality_rows[] = {
    {.name = "enabled",
     .kind = FIELD_CHOICE,
     .at = AT(enabled),
     .choices = off,
     .later = later_on,
     .help = "zones make no difference"},
    {.name = "distribute", .kind = FIELD_LATER, .help = "zones"},
    {.name = "failover", .kind = FIELD_LATER, .help = "zones"},
    {.name = "failoverPriority", .kind = FIELD_LATER, .help = "zones"},
    {.name = NULL},
};
#undef AT

static const struct fields locality_fields = {
    .name = "localityLbSetting",
    .path = "clusters[].trafficPolicy.loadBalancer.localityLbSetting",
    .size = sizeof(struct config_locality),
    .rows = locality_rows,
    .help = "",
};

/* config_resolve.c says which balancer each is. */
static const char *const simple[] = {"UNSPECIFIED", "LEAST_REQUEST", "LEAST_CONN",
                                     "ROUND_ROBIN", "RANDOM",        NULL};
static const char *const later_simple[] = {
    "PASSTHROUGH", "forwarding to the address a client wanted; write LEAST_REQUEST", NULL};

#define AT(member) offsetof(struct config_balancer, member)
static const struct field balancer_rows[] = {
    {.name = "simple",
     .kind = FIELD_CHOICE,
     .at = AT(simple),
     .choices = simple,
     .later = later_simple,
     .help = "`UNSPECIFIED`, `LEAST_REQUEST` and `LEAST_CONN` are `p2c`"},
    {.name = "localityLbSetting",
     .kind = FIELD_OBJECT,
     .at = AT(locality),
     .of = &locality_fields,
     .help = "only to be switched off"},
    {.name = "consistentHash",
     .kind = FIELD_LATER,
     .help = "consistent hashing; write simple: LEAST_REQUEST"},
    {.name = "warmup", .kind = FIELD_LATER, .help = "slow start; leave it out"},
    {.name = "warmupDurationSecs", .kind = FIELD_LATER, .help = "slow start; leave it out"},
    {.name = "zoneAwareLbSetting", .kind = FIELD_LATER, .help = "zones; leave it out"},
    {.name = NULL},
};
#undef AT

const struct fields config_balancer_fields = {
    .name = "loadBalancer",
    .path = "clusters[].trafficPolicy.loadBalancer",
    .size = sizeof(struct config_balancer),
    .rows = balancer_rows,
    .help = "Istio's words for the cluster's own `loadBalancer`; not both.",
};

static const char *const tls_modes[] = {"DISABLE", NULL};
static const char *const later_tls_modes[] = {"SIMPLE",
                                              "TLS; write DISABLE where the hosts take plain HTTP",
                                              "MUTUAL",
                                              "TLS; write DISABLE where the hosts take plain HTTP",
                                              "ISTIO_MUTUAL",
                                              "TLS; write DISABLE where the hosts take plain HTTP",
                                              NULL};

#define AT(member) offsetof(struct config_tls, member)
static const struct field tls_rows[] = {
    {.name = "mode",
     .kind = FIELD_CHOICE,
     .at = AT(mode),
     .choices = tls_modes,
     .later = later_tls_modes,
     .help = "hosts are spoken to in plain text"},
    {.name = "clientCertificate", .kind = FIELD_LATER, .help = "TLS"},
    {.name = "privateKey", .kind = FIELD_LATER, .help = "TLS"},
    {.name = "caCertificates", .kind = FIELD_LATER, .help = "TLS"},
    {.name = "caCrl", .kind = FIELD_LATER, .help = "TLS"},
    {.name = "credentialName", .kind = FIELD_LATER, .help = "TLS"},
    {.name = "subjectAltNames", .kind = FIELD_LATER, .help = "TLS"},
    {.name = "sni", .kind = FIELD_LATER, .help = "TLS"},
    {.name = "insecureSkipVerify", .kind = FIELD_LATER, .help = "TLS"},
    {.name = NULL},
};
#undef AT

const struct fields config_tls_fields = {
    .name = "tls",
    .path = "clusters[].trafficPolicy.tls",
    .size = sizeof(struct config_tls),
    .rows = tls_rows,
    .help = "",
};

#define AT(member) offsetof(struct config_port, member)
static const struct field port_rows[] = {
    {.name = "number",
     .kind = FIELD_COUNT,
     .at = AT(number),
     .min = 1,
     .max = 65535,
     .required = true,
     .help = "the cluster's `port`"},
    {.name = NULL},
};
#undef AT

static const struct fields port_fields = {
    .name = "port",
    .path = "clusters[].trafficPolicy.portLevelSettings[].port",
    .size = sizeof(struct config_port),
    .rows = port_rows,
    .not_empty = "portTrafficPolicy must have valid port",
    .help = "",
};

#define AT(member) offsetof(struct config_port_policy, member)
static const struct field port_policy_rows[] = {
    {.name = "port",
     .kind = FIELD_OBJECT,
     .at = AT(port),
     .of = &port_fields,
     .required = true,
     .help = "which port: `{number: 80}`"},
    CONFIG_POLICY_BLOCKS(AT),
    {.name = NULL},
};
#undef AT

const struct fields config_port_policy_fields = {
    .name = "portLevelSettings",
    .path = "clusters[].trafficPolicy.portLevelSettings[]",
    .size = sizeof(struct config_port_policy),
    .rows = port_policy_rows,
    .not_empty = "port traffic policy must have at least one field, and a port",
    .help = "The entry with the cluster's port replaces everything: a block that it leaves out is "
            "as if nobody had written it, not taken from above.",
};

#define AT(member) offsetof(struct config_subset, member)
static const struct field subset_rows[] = {
    {.name = "name",
     .kind = FIELD_NAME,
     .at = AT(name),
     .max = LABEL_MAX,
     .required = true,
     .help = "stands in the cluster's name, `outbound|PORT|NAME|HOST`"},
    {.name = "labels",
     .kind = FIELD_LABELS,
     .at = AT(labels),
     .help = "the endpoints that have all of them"},
    {.name = "trafficPolicy",
     .kind = FIELD_OBJECT,
     .at = AT(policy),
     .of = &config_policy_fields,
     .help = "each block that is there replaces that of the rule"},
    {.name = NULL},
};
#undef AT

static const struct fields subset_fields = {
    .name = "subset",
    .path = "spec.subsets[]",
    .size = sizeof(struct config_subset),
    .rows = subset_rows,
    .help = "A part of the endpoints, and a cluster of its own.",
};

#define AT(member) offsetof(struct config_rule_spec, member)
static const struct field spec_rows[] = {
    {.name = "host",
     .kind = FIELD_TEXT,
     .at = AT(host),
     .required = true,
     .help = "the cluster's `host`; `*.suffix` or `*` for those without a rule of their own"},
    {.name = "trafficPolicy",
     .kind = FIELD_OBJECT,
     .at = AT(policy),
     .of = &config_policy_fields,
     .help = "as in a cluster of the native form"},
    {.name = "subsets",
     .kind = FIELD_OBJECTS,
     .at = AT(subsets),
     .of = &subset_fields,
     .help = "parts of the endpoints"},
    {.name = "exportTo",
     .kind = FIELD_TEXTS,
     .at = AT(export_to),
     .help = "namespaces that the rule is for: names, `.` or `*`"},
    {.name = "workloadSelector",
     .kind = FIELD_REFUSED,
     .help = "it picks the pods that a rule is for, and here the rule is given to one proxy; leave "
             "it out"},
    {.name = NULL},
};
#undef AT

static const struct fields spec_fields = {
    .name = "spec",
    .path = "spec",
    .size = sizeof(struct config_rule_spec),
    .rows = spec_rows,
    .help = "",
};

#define AT(member) offsetof(struct config_metadata, member)
static const struct field metadata_rows[] = {
    {.name = "name", .kind = FIELD_TEXT, .at = AT(name), .help = "said in messages"},
    {.name = "namespace",
     .kind = FIELD_NAME,
     .at = AT(namespace),
     .max = LABEL_MAX,
     .help = "completes a short `spec.host`"},
    {.name = NULL},
};
#undef AT

static const struct fields metadata_fields = {
    .name = "metadata",
    .path = "metadata",
    .size = sizeof(struct config_metadata),
    .rows = metadata_rows,
    .open = true,
    .help = "",
};

static const char *const versions[] = {"networking.istio.io/v1", "networking.istio.io/v1beta1",
                                       "networking.istio.io/v1alpha3", NULL};
static const char *const kinds[] = {"DestinationRule", NULL};

static const struct field status_rows[] = {{.name = NULL}};

/* What a cluster wrote into a document that was taken out of it. */
static const struct fields status_fields = {
    .name = "status",
    .path = "status",
    .size = sizeof(struct field_head),
    .rows = status_rows,
    .open = true,
    .help = "",
};

#define AT(member) offsetof(struct config_rule, member)
static const struct field rule_rows[] = {
    {.name = "apiVersion",
     .kind = FIELD_CHOICE,
     .at = AT(version),
     .choices = versions,
     .required = true,
     .help = "which form of Istio's; all three have the same fields"},
    {.name = "kind",
     .kind = FIELD_CHOICE,
     .at = AT(kind),
     .choices = kinds,
     .required = true,
     .help = "the only kind that is read"},
    {.name = "metadata",
     .kind = FIELD_OBJECT,
     .at = AT(metadata),
     .of = &metadata_fields,
     .help = "name and namespace; the rest of it is not looked at"},
    {.name = "spec",
     .kind = FIELD_OBJECT,
     .at = AT(spec),
     .of = &spec_fields,
     .required = true,
     .help = "the rule"},
    {.name = "status",
     .kind = FIELD_OBJECT,
     .at = AT(status),
     .of = &status_fields,
     .help = "not looked at"},
    {.name = NULL},
};
#undef AT

const struct fields config_rule_fields = {
    .name = "DestinationRule",
    .path = "DestinationRule",
    .size = sizeof(struct config_rule),
    .rows = rule_rows,
    .help = "A document of its own, in the same file or another.",
};
