package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	crdv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

func (j *journey) namespaces() bool {
	client := j.clients.CoreV1().Namespaces()
	made, err := client.Create(j.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: j.namespace}}, metav1.CreateOptions{})
	if !j.done("namespaces.create", made.GetResourceVersion(), err) {
		return false
	}
	j.check("namespaces.phase", made.Status.Phase == corev1.NamespaceActive, "phase is %q", made.Status.Phase)
	_, err = client.Create(j.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: j.namespace}}, metav1.CreateOptions{})
	j.check("namespaces.create-again", apierrors.IsAlreadyExists(err), "want AlreadyExists, got %v", err)
	return true
}

func (j *journey) configMaps() {
	client := j.clients.CoreV1().ConfigMaps(j.namespace)
	made, err := client.Create(j.ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{"app": "peers"}},
		Data:       map[string]string{"text": "grüße", "empty": ""},
		BinaryData: map[string][]byte{"bytes": {0, 1, 254, 255}},
	}, metav1.CreateOptions{})
	if !j.done("configmaps.create", made.GetResourceVersion(), err) {
		return
	}
	events, err := client.Watch(j.ctx, metav1.ListOptions{ResourceVersion: made.ResourceVersion, LabelSelector: "app=peers"})
	if !j.done("configmaps.watch", "", err) {
		return
	}
	defer events.Stop()

	read, err := client.Get(j.ctx, "one", metav1.GetOptions{})
	j.done("configmaps.get", read.GetResourceVersion(), err)
	j.check("configmaps.same", read.Data["text"] == "grüße" && string(read.BinaryData["bytes"]) == "\x00\x01\xfe\xff",
		"data came back as %v %v", read.Data, read.BinaryData)

	read.Data["text"] = "second"
	changed, err := client.Update(j.ctx, read, metav1.UpdateOptions{})
	j.done("configmaps.update", changed.GetResourceVersion(), err)
	got, err := next(j.ctx, events.ResultChan(), watch.Modified)
	j.done("configmaps.watch-modified", "", err)
	if seen, is := got.Object.(*corev1.ConfigMap); is {
		j.check("configmaps.watch-object", seen.ResourceVersion == changed.GetResourceVersion() && seen.Data["text"] == "second",
			"the event carries %s %v", seen.ResourceVersion, seen.Data)
	}
	read.ResourceVersion = made.ResourceVersion
	_, err = client.Update(j.ctx, read, metav1.UpdateOptions{})
	j.check("configmaps.conflict", apierrors.IsConflict(err), "want Conflict, got %v", err)

	for name, patch := range map[string]struct {
		kind types.PatchType
		body []byte
	}{
		"merge":     {types.MergePatchType, []byte(`{"data":{"merge":"yes","empty":null}}`)},
		"strategic": {types.StrategicMergePatchType, []byte(`{"data":{"strategic":"yes"}}`)},
		"json":      {types.JSONPatchType, []byte(`[{"op":"add","path":"/data/json","value":"yes"}]`)},
	} {
		patched, err := client.Patch(j.ctx, "one", patch.kind, patch.body, metav1.PatchOptions{})
		j.done("configmaps.patch-"+name, patched.GetResourceVersion(), err)
		j.check("configmaps.patched-"+name, patched.Data[name] == "yes", "data is %v", patched.Data)
	}
	applied, err := client.Apply(j.ctx, applycorev1.ConfigMap("one", j.namespace).
		WithData(map[string]string{"applied": "yes"}), metav1.ApplyOptions{FieldManager: "peers"})
	j.done("configmaps.apply", applied.GetResourceVersion(), err)
	want := map[string]string{"text": "second", "merge": "yes", "strategic": "yes", "json": "yes", "applied": "yes"}
	j.check("configmaps.result", maps.Equal(applied.Data, want), "data is %v", applied.Data)

	_, err = client.Create(j.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "more-"}}, metav1.CreateOptions{})
	j.done("configmaps.generate-name", "", err)
	all, err := client.List(j.ctx, metav1.ListOptions{})
	j.done("configmaps.list", all.GetResourceVersion(), err)
	some, err := client.List(j.ctx, metav1.ListOptions{LabelSelector: "app in (peers)"})
	j.check("configmaps.list-selected", err == nil && len(some.Items) == 1, "%d items, %v", len(some.Items), err)
	pages, total, err := j.paged()
	j.check("configmaps.list-paged", err == nil && pages == len(all.Items) && total == len(all.Items),
		"%d objects in %d pages of one, %d in one list, %v", total, pages, len(all.Items), err)

	uid := types.UID("00000000-0000-4000-8000-000000000000")
	err = client.Delete(j.ctx, "one", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	j.check("configmaps.delete-precondition", apierrors.IsConflict(err), "want Conflict, got %v", err)
	j.done("configmaps.delete", "", client.Delete(j.ctx, "one", metav1.DeleteOptions{}))
	_, err = client.Get(j.ctx, "one", metav1.GetOptions{})
	j.check("configmaps.gone", apierrors.IsNotFound(err), "want NotFound, got %v", err)
	j.done("configmaps.delete-collection", "", client.DeleteCollection(j.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
}

// paged lists the configmaps one by one and returns the number of pages and of objects.
func (j *journey) paged() (pages, total int, err error) {
	options := metav1.ListOptions{Limit: 1}
	for {
		page, err := j.clients.CoreV1().ConfigMaps(j.namespace).List(j.ctx, options)
		if err != nil {
			return pages, total, err
		}
		pages, total = pages+1, total+len(page.Items)
		if options.Continue = page.Continue; options.Continue == "" {
			return pages, total, nil
		}
	}
}

func (j *journey) secrets() {
	client := j.clients.CoreV1().Secrets(j.namespace)
	made, err := client.Create(j.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "password"},
		StringData: map[string]string{"user": "admin"},
		Data:       map[string][]byte{"password": []byte("hunter2")},
	}, metav1.CreateOptions{})
	if !j.done("secrets.create", made.GetResourceVersion(), err) {
		return
	}
	j.check("secrets.defaults", made.Type == corev1.SecretTypeOpaque && string(made.Data["user"]) == "admin" && len(made.StringData) == 0,
		"type %q, data %v, stringData %v", made.Type, made.Data, made.StringData)
	kind, body := mergePatch(map[string]any{"stringData": map[string]string{"user": "root"}})
	patched, err := client.Patch(j.ctx, "password", kind, body, metav1.PatchOptions{})
	j.done("secrets.patch", patched.GetResourceVersion(), err)
	j.check("secrets.patched", string(patched.Data["user"]) == "root", "data is %v", patched.Data)
	made.ResourceVersion, made.Type = "", corev1.SecretTypeBasicAuth
	_, err = client.Update(j.ctx, made, metav1.UpdateOptions{})
	j.check("secrets.type-is-immutable", apierrors.IsInvalid(err), "want Invalid, got %v", err)
	j.done("secrets.delete", "", client.Delete(j.ctx, "password", metav1.DeleteOptions{}))
}

func (j *journey) leases() {
	client := j.clients.CoordinationV1().Leases(j.namespace)
	holder, seconds, now := "peers", int32(15), metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))
	made, err := client.Create(j.ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "turn"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}, metav1.CreateOptions{})
	if !j.done("leases.create", made.GetResourceVersion(), err) {
		return
	}
	j.check("leases.microseconds", made.Spec.RenewTime.Equal(&now), "renewTime %v became %v", now, made.Spec.RenewTime)
	holder = "another"
	changed, err := client.Update(j.ctx, made, metav1.UpdateOptions{})
	j.done("leases.update", changed.GetResourceVersion(), err)
	j.done("leases.delete", "", client.Delete(j.ctx, "turn", metav1.DeleteOptions{}))
}

func (j *journey) events() {
	client := j.clients.CoreV1().Events(j.namespace)
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	made, err := client.Create(j.ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "something.happened"},
		InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", APIVersion: "v1", Namespace: j.namespace, Name: "one"},
		Reason:         "Happened", Message: "something happened", Type: corev1.EventTypeNormal,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if !j.done("events.create", made.GetResourceVersion(), err) {
		return
	}
	found, err := client.List(j.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=one,reason=Happened"})
	j.check("events.list-by-field", err == nil && len(found.Items) == 1, "%d items, %v", len(found.Items), err)
	other, err := j.clients.EventsV1().Events(j.namespace).Get(j.ctx, "something.happened", metav1.GetOptions{})
	j.check("events.other-group", err == nil && other.Note == "something happened" && other.Regarding.Name == "one",
		"note %q, %v", other.Note, err)
	kind, body := mergePatch(map[string]any{"count": 2})
	patched, err := client.Patch(j.ctx, "something.happened", kind, body, metav1.PatchOptions{})
	j.check("events.patch", err == nil && patched.Count == 2, "count %d, %v", patched.Count, err)
}

func (j *journey) customResourceDefinitions() {
	client := j.crds.ApiextensionsV1().CustomResourceDefinitions()
	const name = "boats.peers.bareboat.example"
	made, err := client.Create(j.ctx, &crdv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: crdv1.CustomResourceDefinitionSpec{
			Group: "peers.bareboat.example", Scope: crdv1.NamespaceScoped,
			Names: crdv1.CustomResourceDefinitionNames{Plural: "boats", Kind: "Boat"},
			Versions: []crdv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &crdv1.CustomResourceValidation{OpenAPIV3Schema: &crdv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]crdv1.JSONSchemaProps{"spec": {
						Type:       "object",
						Properties: map[string]crdv1.JSONSchemaProps{"length": {Type: "integer", Default: &crdv1.JSON{Raw: []byte("7")}}},
					}},
				}},
			}},
		},
	}, metav1.CreateOptions{})
	if !j.done("crds.create", made.GetResourceVersion(), err) {
		return
	}
	err = until(j.ctx, func(ctx context.Context) (bool, error) {
		read, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, condition := range read.Status.Conditions {
			if condition.Type == crdv1.Established && condition.Status == crdv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	j.done("crds.established", "", err)
	read, err := client.Get(j.ctx, name, metav1.GetOptions{})
	j.done("crds.get", read.GetResourceVersion(), err)
	j.check("crds.names", read.Status.AcceptedNames.ListKind == "BoatList" && read.Status.AcceptedNames.Singular == "boat",
		"accepted names are %+v", read.Status.AcceptedNames)
	if versions := read.Spec.Versions; j.failed || len(versions) == 0 || versions[0].Schema == nil {
		j.check("crds.schema", len(versions) == 1, "%d versions", len(versions))
	} else {
		raw := versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["length"].Default
		j.check("crds.schema", raw != nil && string(raw.Raw) == "7", "the default is %v", raw)
	}
	kind, body := mergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]string{"peers": "yes"}}})
	patched, err := client.Patch(j.ctx, name, kind, body, metav1.PatchOptions{})
	j.done("crds.patch", patched.GetResourceVersion(), err)
	_, err = client.Create(j.ctx, &crdv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "wrong"}}, metav1.CreateOptions{})
	j.check("crds.invalid", apierrors.IsInvalid(err), "want Invalid, got %v", err)
	j.done("crds.delete", "", client.Delete(j.ctx, name, metav1.DeleteOptions{}))
	err = until(j.ctx, func(ctx context.Context) (bool, error) {
		_, err := client.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		err = fmt.Errorf("still there: %w", err)
	}
	j.done("crds.gone", "", err)
}
