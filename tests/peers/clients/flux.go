package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/utils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fleet is an example repository: a definition, an object of it, and kinds with many defaults and conversions. A second
// apply must find no drift.
const fleet = `
apiVersion: v1
kind: Namespace
metadata: {name: fleet}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.flux.bareboat.example}
spec:
  group: flux.bareboat.example
  scope: Namespaced
  names: {plural: ships, kind: Ship}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              masts: {type: integer, default: 3}
              crew: {type: array, x-kubernetes-list-type: set, items: {type: string}}
---
apiVersion: flux.bareboat.example/v1
kind: Ship
metadata: {name: ada, namespace: fleet}
spec: {crew: [mate, captain]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: fleet}
data: {color: blue, size: "3"}
---
apiVersion: v1
kind: Secret
metadata: {name: vault, namespace: fleet}
stringData: {password: sesame}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: fleet}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: fleet-reader}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: fleet}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: fleet-reader}
subjects: [{kind: ServiceAccount, name: robot}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: fleet}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: fleet}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: robot
      containers:
      - name: web
        image: nginx:1
        ports: [{name: http, containerPort: 8080}]
        env: [{name: COLOR, valueFrom: {configMapKeyRef: {name: settings, key: color}}}]
        resources: {requests: {cpu: 0.1, memory: 64Mi}, limits: {cpu: 1000m}}
        readinessProbe: {httpGet: {path: /, port: http}}
        volumeMounts: [{name: cache, mountPath: /cache}]
      volumes: [{name: cache, emptyDir: {}}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: often, namespace: fleet}
spec:
  schedule: "*/5 * * * *"
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: fleet}
spec:
  rules:
  - host: a.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: inside, namespace: fleet}
spec:
  podSelector: {}
  ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: fleet}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: fleet}
spec:
  maxReplicas: 4
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
`

// flux applies, detects drift and prunes with the library of Flux: everything is applied in a dry run first, and the
// result is compared with the live object.
func flux(flags *flag.FlagSet) func(context.Context, *rest.Config) error {
	patience := flags.Duration("within", 4*time.Minute, "give up after this time")

	return func(ctx context.Context, config *rest.Config) error {
		ctx, cancel := context.WithTimeout(ctx, *patience)
		defer cancel()
		direct, err := client.New(config, client.Options{})
		if err != nil {
			return err
		}
		objects, err := utils.ReadObjects(strings.NewReader(fleet))
		if err != nil {
			return err
		}
		poller := polling.NewStatusPoller(direct, direct.RESTMapper(), polling.Options{})
		owner := ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"}
		f := &fluxUser{user: user{client: direct, ctx: ctx}, manager: ssa.NewResourceManager(direct, poller, owner)}
		f.manager.SetOwnerLabels(objects, "fleet", "flux-system")
		f.plays(objects)
		if f.failed {
			return errFailed
		}
		return nil
	}
}

// fluxUser is a Flux controller and the clients that interfere with it.
type fluxUser struct {
	user
	manager *ssa.ResourceManager
}

func (f *fluxUser) plays(objects []*unstructured.Unstructured) {
	options := ssa.DefaultApplyOptions()
	options.WaitInterval = 100 * time.Millisecond
	all := func(action ssa.Action) map[string]ssa.Action {
		wanted := map[string]ssa.Action{}
		for _, object := range objects {
			wanted[utils.FmtUnstructured(object)] = action
		}
		return wanted
	}
	changes, err := f.manager.ApplyAllStaged(f.ctx, copies(objects), options)
	if !f.expect("all created", errOr(err, changes, all(ssa.CreatedAction))) {
		return
	}
	changes, err = f.manager.ApplyAllStaged(f.ctx, copies(objects), options)
	f.expect("nothing drifted", errOr(err, changes, all(ssa.UnchangedAction)))

	// Another client changes an applied field, and one that is not applied.
	web := find(objects, "Deployment")
	f.patch(web, "kubectl-edit", `{"spec":{"replicas":5,"minReadySeconds":7}}`)
	difference, _, _, err := f.manager.Diff(f.ctx, web.DeepCopy(), ssa.DefaultDiffOptions())
	if err == nil && difference.Action != ssa.ConfiguredAction {
		err = fmt.Errorf("it is %s", difference.Action)
	}
	f.expect("drift found", err)
	wanted := all(ssa.UnchangedAction)
	wanted[utils.FmtUnstructured(web)] = ssa.ConfiguredAction
	changes, err = f.manager.ApplyAll(f.ctx, copies(objects), options)
	f.expect("drift corrected", errOr(err, changes, wanted))
	f.expect("what is applied is back", f.holds(web, 2, "spec", "replicas"))
	f.expect("what is not applied is left alone", f.holds(web, 7, "spec", "minReadySeconds"))

	// Fields of other managers are taken over, and their entries are removed.
	settings := find(objects, "ConfigMap")
	f.patch(settings, "kubectl-client-side-apply", `{"metadata":{"annotations":{"old":"1"}},"data":{"stale":"1"}}`)
	options.Cleanup = ssa.ApplyCleanupOptions{
		Annotations:   []string{"old"},
		FieldManagers: []ssa.FieldManager{{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate}},
	}
	_, err = f.manager.Apply(f.ctx, settings.DeepCopy(), options)
	f.expect("taken over", err)
	f.expect("nobody else owns it", f.ownedBy(settings, "kustomize-controller"))

	// Changes of immutable fields are rejected, or the object is recreated if requested.
	other := web.DeepCopy()
	_ = unstructured.SetNestedField(other.Object, "other", "spec", "selector", "matchLabels", "app")
	_ = unstructured.SetNestedField(other.Object, "other", "spec", "template", "metadata", "labels", "app")
	if _, err = f.manager.Apply(f.ctx, other.DeepCopy(), options); err == nil || !strings.Contains(err.Error(), "immutable") {
		f.expect("immutable field refused", fmt.Errorf("instead: %w", err))
	}
	options.Force = true
	_, err = f.manager.Apply(f.ctx, other, options)
	f.expect("made anew", err)

	changes, err = f.manager.DeleteAll(f.ctx, copies(objects), ssa.DefaultDeleteOptions())
	f.expect("all deleted", errOr(err, changes, all(ssa.DeletedAction)))
	waiting := ssa.WaitOptions{Interval: 100 * time.Millisecond, Timeout: 2 * time.Minute}
	f.expect("all gone", f.manager.WaitForTermination(objects, waiting))
}

func (f *fluxUser) patch(object *unstructured.Unstructured, manager, patch string) {
	err := f.client.Patch(f.ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)),
		client.FieldOwner(manager))
	f.expect(manager+" interferes", err)
}

// holds checks a number in the live object.
func (f *fluxUser) holds(object *unstructured.Unstructured, wanted int64, path ...string) error {
	live := object.DeepCopy()
	if err := f.client.Get(f.ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return err
	}
	if found, _, _ := unstructured.NestedInt64(live.Object, path...); found != wanted {
		return fmt.Errorf("%v is %d", path, found)
	}
	return nil
}

// ownedBy checks that one manager applies all fields of an object.
func (f *fluxUser) ownedBy(object *unstructured.Unstructured, manager string) error {
	live := object.DeepCopy()
	if err := f.client.Get(f.ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return err
	}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply {
			return fmt.Errorf("%s owns %s", entry.Manager, entry.FieldsV1.String())
		}
	}
	if data, _, _ := unstructured.NestedStringMap(live.Object, "data"); data["stale"] != "" {
		return fmt.Errorf("stale data is left: %v", data)
	}
	return nil
}

func copies(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	copied := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		copied = append(copied, object.DeepCopy())
	}
	return copied
}

func find(objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	return objects[slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })]
}

// errOr returns the error, or the changes that differ from the wanted ones.
func errOr(err error, changes *ssa.ChangeSet, wanted map[string]ssa.Action) error {
	if err != nil {
		return err
	}
	var wrong []string
	for _, entry := range changes.Entries {
		if wanted[entry.Subject] != entry.Action {
			wrong = append(wrong, fmt.Sprintf("%s is %s", entry.Subject, entry.Action))
		}
	}
	if len(wrong) > 0 || len(changes.Entries) != len(wanted) {
		return fmt.Errorf("%d of %d changes; %s", len(changes.Entries), len(wanted), strings.Join(wrong, ", "))
	}
	return nil
}
