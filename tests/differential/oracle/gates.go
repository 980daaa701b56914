// Copyright: (c) 2026, The kubenode.memory authors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"encoding/json"
	"sort"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	logsapi "k8s.io/component-base/logs/api/v1"
	metricsfeatures "k8s.io/component-base/metrics/features"
	_ "k8s.io/controller-manager/pkg/features/register"
)

// init registers the gates that the kubelet's command registers beside those of the packages it shares with the
// oracle: in cmd/kubelet/app, pkg/kubelet/server and, by the import above, the cloud provider's options.
func init() {
	gates := utilfeature.DefaultMutableFeatureGate
	for _, err := range []error{logsapi.AddFeatureGates(gates), metricsfeatures.AddFeatureGates(gates)} {
		if err != nil {
			panic(err)
		}
	}
}

type gate struct {
	Name    string `json:"name"`
	Stage   string `json:"stage"`
	Default bool   `json:"default"`
	Locked  bool   `json:"locked"`
	// Needs are the gates without which this one stops the kubelet when it is on.
	Needs []string `json:"needs"`
}

// stageName spells GA, which the module writes as the empty string.
func stageName(prerelease string) string {
	if prerelease == "" {
		return "GA"
	}
	return prerelease
}

// answerGates lists every gate that this release's kubelet accepts, by name.
func answerGates(json.RawMessage) (any, error) {
	gates, needs := []gate{}, gateDependencies()
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		gates = append(gates, gate{string(name), stageName(string(spec.PreRelease)), spec.Default, spec.LockToDefault, needs[string(name)]})
	}
	sort.Slice(gates, func(a, b int) bool { return gates[a].Name < gates[b].Name })
	return gates, nil
}
