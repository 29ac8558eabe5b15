package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// stress lets many writers increment one counter: read, add one, update with the version that was read, and start again
// on a conflict. A lost update shows as a counter that is too small.
func stress(flags *flag.FlagSet) func(context.Context, *rest.Config) error {
	writers := flags.Int("writers", 16, "concurrent writers, each with a connection of its own")
	increments := flags.Int("increments", 25, "increments per writer")
	namespace := flags.String("namespace", "default", "namespace of the configmap")
	name := flags.String("name", "stress", "name of the configmap; created with counter 0 when missing")
	patience := flags.Duration("within", 4*time.Minute, "give up after this time")

	return func(ctx context.Context, config *rest.Config) error {
		ctx, cancel := context.WithTimeout(ctx, *patience)
		defer cancel()
		client, err := kubernetes.NewForConfig(asProtobuf(config))
		if err != nil {
			return err
		}
		maps := client.CoreV1().ConfigMaps(*namespace)
		before, err := counter(ctx, maps, *name)
		if apierrors.IsNotFound(err) {
			before = 0
			_, err = maps.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: *name}, Data: map[string]string{"counter": "0"},
			}, metav1.CreateOptions{})
		}
		if err != nil {
			return err
		}

		var conflicts, done atomic.Int64
		started := time.Now()
		failures := make(chan error, *writers)
		var all sync.WaitGroup
		for writer := range *writers {
			all.Go(func() {
				own := asProtobuf(config)
				// Its own dial function keeps the transport cache from sharing one connection.
				own.Dial = (&net.Dialer{Timeout: time.Minute}).DialContext
				own.UserAgent = fmt.Sprintf("stress/%d", writer)
				client, err := kubernetes.NewForConfig(own)
				if err != nil {
					failures <- err
					return
				}
				for range *increments {
					if err := increment(ctx, client.CoreV1().ConfigMaps(*namespace), *name, &conflicts); err != nil {
						failures <- err
						return
					}
					done.Add(1)
				}
			})
		}
		all.Wait()
		close(failures)
		messages := []string{}
		for err := range failures {
			messages = append(messages, err.Error())
		}
		after, err := counter(context.WithoutCancel(ctx), maps, *name)
		if err != nil {
			return err
		}
		expected := before + int(done.Load())
		say(map[string]any{
			"type": "STRESS", "counter": after, "expected": expected, "acknowledged": done.Load(), "lost": expected - after,
			"conflicts": conflicts.Load(), "seconds": time.Since(started).Seconds(), "failures": messages,
		})
		if after != expected || len(messages) > 0 {
			return errFailed
		}
		return nil
	}
}

func counter(ctx context.Context, maps corev1client.ConfigMapInterface, name string) (int, error) {
	current, err := maps.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(current.Data["counter"])
}

func increment(ctx context.Context, maps corev1client.ConfigMapInterface, name string, conflicts *atomic.Int64) error {
	for {
		current, err := maps.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		value, err := strconv.Atoi(current.Data["counter"])
		if err != nil {
			return err
		}
		current.Data["counter"] = strconv.Itoa(value + 1)
		_, err = maps.Update(ctx, current, metav1.UpdateOptions{})
		if err == nil || !apierrors.IsConflict(err) {
			return err
		}
		conflicts.Add(1)
	}
}
