//go:build tools

// Package tools keeps the programs in go.mod.
package tools

import (
	_ "sigs.k8s.io/controller-tools/cmd/controller-gen"
	_ "sigs.k8s.io/kubebuilder/v4"
	_ "sigs.k8s.io/kustomize/kustomize/v5"
)
