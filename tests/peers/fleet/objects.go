package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// A kind that ghosts serve.
type kind struct {
	group, version, resource, name string
	// How many objects of it a ghost has.
	count int
}

// The first kind is Pod; a tenth of the objects are Pods, and the others are split among the rest.
func kinds(objects int) []*kind {
	named := map[string][]string{
		"": {
			"Pod", "ConfigMap", "Service", "Endpoints", "ServiceAccount", "PersistentVolumeClaim",
			"ReplicationController", "LimitRange", "ResourceQuota", "PodTemplate",
		},
		"apps":                      {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision"},
		"batch":                     {"Job", "CronJob"},
		"networking.k8s.io":         {"Ingress", "NetworkPolicy"},
		"autoscaling":               {"HorizontalPodAutoscaler"},
		"policy":                    {"PodDisruptionBudget"},
		"rbac.authorization.k8s.io": {"Role", "RoleBinding"},
		"discovery.k8s.io":          {"EndpointSlice"},
	}
	for number := range 16 {
		named["apps"] = append(named["apps"], fmt.Sprintf("Extra%02d", number))
	}
	var all []*kind
	for _, group := range groupNames {
		for _, name := range named[group] {
			all = append(all, &kind{group, "v1", plural(name), name, 0})
		}
	}
	all[0].count = objects / 10
	rest := objects - all[0].count
	for index, one := range all[1:] {
		left := len(all) - 1 - index
		one.count = rest / left
		rest -= one.count
	}
	return all
}

var groupNames = []string{
	"", "apps", "batch", "networking.k8s.io", "autoscaling", "policy", "rbac.authorization.k8s.io", "discovery.k8s.io",
}

func plural(name string) string {
	lower := strings.ToLower(name)
	switch {
	case strings.HasSuffix(lower, "endpoints"):
		return lower
	case strings.HasSuffix(lower, "s"):
		return lower + "es"
	case strings.HasSuffix(lower, "y"):
		return lower[:len(lower)-1] + "ies"
	}
	return lower + "s"
}

func (k *kind) path() string {
	if k.group == "" {
		return "/api/" + k.version + "/" + k.resource
	}
	return "/apis/" + k.group + "/" + k.version + "/" + k.resource
}

func (k *kind) apiVersion() string {
	if k.group == "" {
		return k.version
	}
	return k.group + "/" + k.version
}

// Text that no index has. An object has it three times: 2.5 KB of its 3 KB.
var filler = strings.Repeat("0123456789abcdef", 53)

// The image of a container that every object has.
const sideImage = "registry.example.com/side:2"

// write appends an object, about 3 KB of JSON (3,024 bytes of a Pod) without type. `more` are additional annotations.
func (k *kind) write(out *bytes.Buffer, member, number int, version uint64, more string) {
	phase := []string{"Running", "Running", "Running", "Pending", "Failed"}[number%5]
	fmt.Fprintf(out, `{"metadata":{"name":"object-%06d","namespace":"namespace-%02d","uid":"%s-%04d-%06d","resourceVersion":"%d",`+
		`"creationTimestamp":"2024-01-01T00:00:00Z","labels":{"app":"app-%d","team":"team-%d","tier":"tier-%d"},`+
		`"annotations":{"example.com/text":"%s"%s}},`,
		number, number%50, k.resource, member, number, version, number%97, (member*7919+number)%1000, number%3, filler, more)
	fmt.Fprintf(out, `"spec":{"nodeName":"node-%d-%d","replicas":%d,"containers":[{"name":"main","image":"registry.example.com/app-%d:1.%d","args":["%s"]},`+
		`{"name":"side","image":"%s"}]},"status":{"phase":"%s","message":"%s"}}`,
		member, number/100, number%9, number%97, number%10, filler, sideImage, phase, filler)
}

// page writes a part of a list, and returns the token of the next one.
func (k *kind) page(out *bytes.Buffer, member, from, limit int, version uint64, endless bool) {
	to := from + limit
	next := strconv.Itoa(to)
	if !endless && to >= k.count {
		to, next = k.count, ""
	}
	fmt.Fprintf(out, `{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"%d","continue":"%s"},"items":[`,
		k.name, k.apiVersion(), version, next)
	for number := from; number < to; number++ {
		if number > from {
			out.WriteByte(',')
		}
		k.write(out, member, number, uint64(number)+1, "")
	}
	out.WriteString("]}")
}
