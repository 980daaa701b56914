// Copyright: (c) 2026, The kubenode.memory authors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

//go:build kube_1_35

package main

import (
	"sort"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// gateDependencies lists, by gate, the gates that it needs.
func gateDependencies() map[string][]string {
	needs := map[string][]string{}
	for gate, dependencies := range utilfeature.DefaultMutableFeatureGate.Dependencies() {
		for _, dependency := range dependencies {
			needs[string(gate)] = append(needs[string(gate)], string(dependency))
		}
		sort.Strings(needs[string(gate)])
	}
	return needs
}
