package controller

import "strings"

// text returns the text of a ConfigMap: the message, repeated.
func text(message string, times int32) string {
	lines := make([]string, max(times, 1))
	for i := range lines {
		lines[i] = message
	}
	return strings.Join(lines, "\n")
}
