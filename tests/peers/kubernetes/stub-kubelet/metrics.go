// The resource metrics of a kubelet: what metrics-server reads. The node and every container have a constant use.
package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// containers is a flag that is given once per container, as NAMESPACE/POD/CONTAINER.
type containers []string

func (c *containers) String() string { return strings.Join(*c, ",") }

func (c *containers) Set(text string) error {
	if strings.Count(text, "/") != 2 {
		return fmt.Errorf("%q is not NAMESPACE/POD/CONTAINER", text)
	}
	*c = append(*c, text)
	return nil
}

// resourceMetrics serves half a core and 512 MiB for the node, a tenth of a core and 64 MiB for each container. Counters of
// processor time grow since the start of this process.
func resourceMetrics(shown containers) http.HandlerFunc {
	const mebibyte = 1 << 20
	started := time.Now()
	return func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now()
		seconds := now.Sub(started).Seconds() + 1
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		line := func(name, labels string, value float64) {
			fmt.Fprintf(w, "# TYPE %s gauge\n%s%s %g %d\n", name, name, labels, value, now.UnixMilli())
		}
		line("node_cpu_usage_seconds_total", "", 0.5*seconds)
		line("node_memory_working_set_bytes", "", 512*mebibyte)
		for _, container := range shown {
			parts := strings.Split(container, "/")
			labels := fmt.Sprintf("{container=%q,namespace=%q,pod=%q}", parts[2], parts[0], parts[1])
			line("container_cpu_usage_seconds_total", labels, 0.1*seconds)
			line("container_memory_working_set_bytes", labels, 64*mebibyte)
			line("container_start_time_seconds", labels, float64(started.Unix()-60))
		}
	}
}
