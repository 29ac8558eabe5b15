package main

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var greetings = schema.GroupVersion{Group: "manager.bareboat.example", Version: "v1"}

// Greeting is a kind with the layout of kubebuilder: its text is written to a ConfigMap, with the voice of a Secret.
type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GreetingSpec   `json:"spec"`
	Status GreetingStatus `json:"status,omitzero"`
}

// GreetingSpec is the desired state.
type GreetingSpec struct {
	Text string `json:"text"`
	// VoiceFrom names a Secret with a key "voice".
	VoiceFrom string `json:"voiceFrom,omitempty"`
}

// GreetingStatus is the observed state.
type GreetingStatus struct {
	Said               string             `json:"said,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// GreetingList is a list of greetings.
type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Greeting `json:"items"`
}

// DeepCopyObject makes a Greeting a runtime.Object.
func (g *Greeting) DeepCopyObject() runtime.Object {
	copied := *g
	copied.ObjectMeta = *g.ObjectMeta.DeepCopy()
	copied.Status.Conditions = nil
	for _, condition := range g.Status.Conditions {
		copied.Status.Conditions = append(copied.Status.Conditions, *condition.DeepCopy())
	}
	return &copied
}

// DeepCopyObject makes a GreetingList a runtime.Object.
func (l *GreetingList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.ListMeta = *l.ListMeta.DeepCopy()
	copied.Items = nil
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*Greeting))
	}
	return &copied
}

func addGreetings(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(greetings, &Greeting{}, &GreetingList{})
	metav1.AddToGroupVersion(scheme, greetings)
	return nil
}

// greetingDefinition is the definition that controller-gen would generate for the types above.
func greetingDefinition() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	short := int64(1)
	condition := apiextensionsv1.JSONSchemaProps{
		Type: "object", Required: []string{"type", "status"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"type": text, "status": text, "reason": text, "message": text,
			"lastTransitionTime": {Type: "string", Format: "date-time"},
			"observedGeneration": {Type: "integer", Format: "int64"},
		},
	}
	byType := "map"
	root := apiextensionsv1.JSONSchemaProps{
		Type: "object", Required: []string{"spec"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"spec": {
				Type: "object", Required: []string{"text"},
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"text": {Type: "string", MinLength: &short}, "voiceFrom": text,
				},
			},
			"status": {
				Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"said": text, "observedGeneration": {Type: "integer", Format: "int64"},
					"conditions": {
						Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition},
						XListType: &byType, XListMapKeys: []string{"type"},
					},
				},
			},
		},
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "greetings." + greetings.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: greetings.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "greetings", Singular: "greeting", Kind: "Greeting", ListKind: "GreetingList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: greetings.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
			}},
		},
	}
}
