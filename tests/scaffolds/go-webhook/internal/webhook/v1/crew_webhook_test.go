package v1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiv1 "fleet.example.org/guard/api/v1"
)

func TestCrewsAreChangedAndRefused(t *testing.T) {
	rules := &CrewRules{}
	object := &apiv1.Crew{ObjectMeta: metav1.ObjectMeta{Name: "first"}}
	if err := rules.Default(t.Context(), object); err != nil || object.Labels["reviewed-by"] != "guard" {
		t.Fatalf("%v: %v", object.Labels, err)
	}
	if _, err := rules.ValidateCreate(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	object.Name = "forbidden-one"
	if _, err := rules.ValidateCreate(t.Context(), object); err == nil {
		t.Fatal("it is not refused")
	}
}
