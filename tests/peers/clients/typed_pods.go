package main

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
)

// pods tests all subresources of a pod: binding, status, resize, ephemeral containers, and eviction with a budget.
func (j *journey) pods() {
	client := j.clients.CoreV1().Pods(j.namespace)
	// A pod is resized within the resources of its node.
	nodes := j.clients.CoreV1().Nodes()
	node, err := nodes.Create(j.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, metav1.CreateOptions{})
	if !j.done("nodes.create", node.GetResourceVersion(), err) {
		return
	}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	node, err = nodes.UpdateStatus(j.ctx, node, metav1.UpdateOptions{})
	j.done("nodes.update-status", node.GetResourceVersion(), err)
	small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	made, err := client.Create(j.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "nginx", Resources: corev1.ResourceRequirements{Requests: small},
		}}},
	}, metav1.CreateOptions{})
	if !j.done("pods.create", made.GetResourceVersion(), err) {
		return
	}
	j.check("pods.defaults", made.Status.Phase == corev1.PodPending && made.Spec.RestartPolicy == corev1.RestartPolicyAlways,
		"phase %q, restart policy %q", made.Status.Phase, made.Spec.RestartPolicy)

	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: j.namespace},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "node-1"},
	}
	j.done("pods.bind", "", client.Bind(j.ctx, binding, metav1.CreateOptions{}))
	err = client.Bind(j.ctx, binding, metav1.CreateOptions{})
	j.check("pods.bind-again", apierrors.IsConflict(err), "want Conflict, got %v", err)
	bound, err := client.Get(j.ctx, "web", metav1.GetOptions{})
	j.done("pods.get", bound.GetResourceVersion(), err)
	j.check("pods.bound", bound.Spec.NodeName == "node-1" && condition(bound, corev1.PodScheduled) == corev1.ConditionTrue,
		"node %q, conditions %v", bound.Spec.NodeName, bound.Status.Conditions)

	bound.Status.Phase = corev1.PodRunning
	bound.Status.Conditions = append(bound.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	running, err := client.UpdateStatus(j.ctx, bound, metav1.UpdateOptions{})
	j.done("pods.update-status", running.GetResourceVersion(), err)
	j.check("pods.running", running.Status.Phase == corev1.PodRunning, "phase %q", running.Status.Phase)

	running.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}
	_, err = client.Update(j.ctx, running, metav1.UpdateOptions{})
	j.check("pods.update-resources", apierrors.IsInvalid(err), "want Invalid, got %v", err)
	resized, err := client.UpdateResize(j.ctx, "web", running, metav1.UpdateOptions{})
	if j.done("pods.resize", resized.GetResourceVersion(), err) {
		cpu := resized.Spec.Containers[0].Resources.Requests.Cpu()
		j.check("pods.resized", cpu.String() == "200m" && resized.Generation == running.Generation+1,
			"cpu %s, generation %d after %d", cpu, resized.Generation, running.Generation)
	}

	resized.Spec.EphemeralContainers = append(resized.Spec.EphemeralContainers, corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox"},
		TargetContainerName:      "main",
	})
	debugged, err := client.UpdateEphemeralContainers(j.ctx, "web", resized, metav1.UpdateOptions{})
	if j.done("pods.ephemeral-containers", debugged.GetResourceVersion(), err) {
		added := debugged.Spec.EphemeralContainers
		j.check("pods.debugged", len(added) == 1 && added[0].TargetContainerName == "main" && added[0].ImagePullPolicy == corev1.PullAlways,
			"ephemeral containers are %v", added)
	}
	j.evictions()
}

// evictions tries to evict the only pod of a budget, first without and then with an allowed disruption.
func (j *journey) evictions() {
	client := j.clients.CoreV1().Pods(j.namespace)
	budgets := j.clients.PolicyV1().PodDisruptionBudgets(j.namespace)
	one := intstr.FromInt32(1)
	budget, err := budgets.Create(j.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &one,
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}, metav1.CreateOptions{})
	if !j.done("budgets.create", budget.GetResourceVersion(), err) {
		return
	}
	// The status that a disruption controller would write: one pod exists, and one is needed.
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1,
	}
	budget, err = budgets.UpdateStatus(j.ctx, budget, metav1.UpdateOptions{})
	j.done("budgets.update-status", budget.GetResourceVersion(), err)

	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: j.namespace}}
	err = client.EvictV1(j.ctx, eviction)
	j.check("pods.evict-refused", apierrors.IsTooManyRequests(err) && apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause),
		"want TooManyRequests because of the budget, got %v", err)
	kept, err := client.Get(j.ctx, "web", metav1.GetOptions{})
	j.check("pods.kept", err == nil && kept.DeletionTimestamp == nil, "%v", err)

	budget.Status.CurrentHealthy, budget.Status.DisruptionsAllowed = 2, 1
	budget, err = budgets.UpdateStatus(j.ctx, budget, metav1.UpdateOptions{})
	j.done("budgets.allow", budget.GetResourceVersion(), err)
	events, err := client.Watch(j.ctx, metav1.ListOptions{ResourceVersion: kept.GetResourceVersion(), FieldSelector: "metadata.name=web"})
	if !j.done("pods.watch", "", err) {
		return
	}
	defer events.Stop()
	dry := eviction.DeepCopy()
	dry.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	j.done("pods.evict-dry", "", j.clients.PolicyV1().Evictions(j.namespace).Evict(j.ctx, dry))
	now := int64(0)
	eviction.DeleteOptions = &metav1.DeleteOptions{GracePeriodSeconds: &now}
	j.done("pods.evict", "", j.clients.PolicyV1().Evictions(j.namespace).Evict(j.ctx, eviction))
	// The watch shows the disruption condition, the deletion timestamp and the deletion.
	for _, seen := range []struct {
		step     string
		kind     watch.EventType
		deleting bool
	}{{"pods.told-why", watch.Modified, false}, {"pods.ending", watch.Modified, true}, {"pods.evicted", watch.Deleted, true}} {
		event, err := next(j.ctx, events.ResultChan(), seen.kind)
		if !j.done(seen.step, "", err) {
			return
		}
		if pod, is := event.Object.(*corev1.Pod); is {
			j.check(seen.step+"-state", (pod.DeletionTimestamp != nil) == seen.deleting && condition(pod, corev1.DisruptionTarget) == corev1.ConditionTrue,
				"deleted %v, conditions %v", pod.DeletionTimestamp, pod.Status.Conditions)
		}
	}
	used, err := budgets.Get(j.ctx, "web", metav1.GetOptions{})
	j.check("budgets.used", err == nil && used.Status.DisruptionsAllowed == 0 && len(used.Status.DisruptedPods) == 1,
		"status %v, %v", used.Status, err)
	err = client.EvictV1(j.ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: j.namespace}})
	j.check("pods.evict-gone", apierrors.IsNotFound(err), "want NotFound, got %v", err)
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, found := range pod.Status.Conditions {
		if found.Type == kind {
			return found.Status
		}
	}
	return corev1.ConditionUnknown
}
