package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// YachtSpec defines the desired state of Yacht.
type YachtSpec struct {
	// The text for the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1000
	Message string `json:"message"`

	// How often the text is repeated.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Times int32 `json:"times,omitempty"`
}

// YachtStatus defines the observed state of Yacht.
type YachtStatus struct {
	// Whether the ConfigMap is as it should be.
	// +optional
	Ready bool `json:"ready,omitempty"`

	// The generation of the spec that this is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.spec.message`
// +kubebuilder:printcolumn:name="Ready",type=boolean,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// Yacht keeps a ConfigMap with its message.
type Yacht struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   YachtSpec   `json:"spec,omitempty"`
	Status YachtStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// YachtList contains a list of Yacht.
type YachtList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Yacht `json:"items"`
}

func init() {
	SchemeBuilder.Register(&Yacht{}, &YachtList{})
}
