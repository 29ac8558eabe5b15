//go:build tools

// Package tools keeps the program in go.mod.
package tools

import (
	_ "sigs.k8s.io/apiserver-builder-alpha/cmd/apiserver-boot"
)
