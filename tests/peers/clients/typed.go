package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// step is one line of the typed run.
type step struct {
	Step    string `json:"step"`
	OK      bool   `json:"ok"`
	Version string `json:"resourceVersion,omitempty"`
	Message string `json:"message,omitempty"`
}

// journey is a run through typed clients: it prints each step and records whether one failed.
type journey struct {
	ctx       context.Context
	clients   kubernetes.Interface
	crds      apiextensions.Interface
	namespace string
	failed    bool
}

// done reports a step and returns whether it succeeded.
func (j *journey) done(name, version string, err error) bool {
	line := step{Step: name, OK: err == nil, Version: version}
	if err != nil {
		line.Message = err.Error()
		j.failed = true
	}
	say(line)
	return err == nil
}

// check reports a step that is a comparison.
func (j *journey) check(name string, holds bool, otherwise string, args ...any) {
	var err error
	if !holds {
		err = fmt.Errorf(otherwise, args...)
	}
	j.done(name, "", err)
}

// mediaTypes counts the media types of responses, to prove that protobuf was used both ways.
type mediaTypes struct {
	next            http.RoundTripper
	protobuf, other atomic.Int64
	strangers       atomic.Value
}

func (m *mediaTypes) RoundTrip(request *http.Request) (*http.Response, error) {
	reply, err := m.next.RoundTrip(request)
	if err == nil {
		if kind := reply.Header.Get("Content-Type"); strings.HasPrefix(kind, "application/vnd.kubernetes.protobuf") {
			m.protobuf.Add(1)
		} else {
			m.other.Add(1)
			m.strangers.Store(fmt.Sprintf("%s %s: %q", request.Method, request.URL.Path, kind))
		}
	}
	return reply, err
}

func typed(flags *flag.FlagSet) func(context.Context, *rest.Config) error {
	namespace := flags.String("namespace", "peers-typed", "namespace that is made for the run and deleted after it")
	patience := flags.Duration("within", 4*time.Minute, "give up after this time")

	return func(ctx context.Context, config *rest.Config) error {
		ctx, cancel := context.WithTimeout(ctx, *patience)
		defer cancel()
		config = asProtobuf(config)
		counted := &mediaTypes{}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			counted.next = next
			return counted
		})
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return err
		}
		clients, err := kubernetes.NewForConfigAndClient(config, client)
		if err != nil {
			return err
		}
		crds, err := apiextensions.NewForConfigAndClient(config, client)
		if err != nil {
			return err
		}
		j := &journey{ctx: ctx, clients: clients, crds: crds, namespace: *namespace}
		if j.namespaces() {
			j.configMaps()
			j.secrets()
			j.leases()
			j.events()
			j.pods()
			j.customResourceDefinitions()
			j.done("namespaces.delete", "", clients.CoreV1().Namespaces().Delete(ctx, *namespace, metav1.DeleteOptions{}))
		}
		stranger, _ := counted.strangers.Load().(string)
		j.check("protobuf", counted.protobuf.Load() > 0 && counted.other.Load() == 0,
			"%d of %d replies were not protobuf, the last: %s", counted.other.Load(),
			counted.other.Load()+counted.protobuf.Load(), stranger)
		if j.failed {
			return errFailed
		}
		return nil
	}
}

// next takes one event of the wanted type, skipping bookmarks.
func next(ctx context.Context, events <-chan watch.Event, wanted watch.EventType) (watch.Event, error) {
	for {
		select {
		case got, open := <-events:
			switch {
			case !open:
				return got, errors.New("the watch ended")
			case got.Type == watch.Bookmark:
				continue
			case got.Type != wanted:
				return got, fmt.Errorf("event %s, want %s", got.Type, wanted)
			}
			return got, nil
		case <-time.After(time.Minute):
			return watch.Event{}, fmt.Errorf("no %s event within a minute", wanted)
		case <-ctx.Done():
			return watch.Event{}, ctx.Err()
		}
	}
}

// until polls a condition that a controller or the server makes true.
func until(ctx context.Context, condition func(context.Context) (bool, error)) error {
	return untilWithin(ctx, time.Minute, condition)
}

func untilWithin(ctx context.Context, within time.Duration, condition func(context.Context) (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, within, true, condition)
}

func mergePatch(content map[string]any) (types.PatchType, []byte) {
	return types.MergePatchType, encode(content)
}

func encode(content any) []byte {
	data, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	return data
}
