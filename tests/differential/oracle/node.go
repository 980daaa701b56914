// Copyright: (c) 2026, The kubenode.memory authors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

const podLevelGate = featuregate.Feature("PodLevelResourceManagers")

type hugePages struct {
	PageSizeKB uint64 `json:"page_size_kb"`
	NumPages   uint64 `json:"num_pages"`
}

type numaNode struct {
	ID        int         `json:"id"`
	Memory    uint64      `json:"memory"`
	HugePages []hugePages `json:"hugepages"`
}

type reservation struct {
	NumaNode int32             `json:"numa_node"`
	Limits   map[string]string `json:"limits"`
}

// node is a machine and its kubelet's configuration, in the keys of the recorded vectors.
type node struct {
	Policy  string `json:"policy"`
	Gate    bool   `json:"pod_level_resource_managers_gate"`
	Machine struct {
		Nodes []numaNode `json:"nodes"`
	} `json:"machine"`
	NodeAllocatableReservation map[string]string `json:"node_allocatable_reservation"`
	ReservedMemory             []reservation     `json:"reserved_memory"`
}

func (n node) machineInfo() *machineInfo {
	info := &machineInfo{}
	for _, from := range n.Machine.Nodes {
		to := machineNode{Id: from.ID, Memory: from.Memory}
		for _, pages := range from.HugePages {
			to.HugePages = append(to.HugePages, machineHugePages{PageSize: pages.PageSizeKB, NumPages: pages.NumPages})
		}
		info.Topology = append(info.Topology, to)
	}
	return info
}

func resourceList(texts map[string]string) (v1.ResourceList, error) {
	list := v1.ResourceList{}
	for name, text := range texts {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("quantity %q of %s: %w", text, name, err)
		}
		list[v1.ResourceName(name)] = quantity
	}
	return list, nil
}

func (n node) reservedMemory() ([]kubeletconfig.MemoryReservation, error) {
	reserved := []kubeletconfig.MemoryReservation{}
	for _, from := range n.ReservedMemory {
		limits, err := resourceList(from.Limits)
		if err != nil {
			return nil, err
		}
		reserved = append(reserved, kubeletconfig.MemoryReservation{NumaNode: from.NumaNode, Limits: limits})
	}
	return reserved, nil
}

// setGate gives the process the gate of the request; a release that does not have the gate accepts only false.
func setGate(wanted bool) error {
	gates := utilfeature.DefaultMutableFeatureGate
	if _, known := gates.GetAll()[podLevelGate]; !known {
		if wanted {
			return fmt.Errorf("this release has no gate %s", podLevelGate)
		}
		return nil
	}
	if gates.Enabled(podLevelGate) == wanted {
		return nil
	}
	return gates.SetFromMap(map[string]bool{string(podLevelGate): wanted})
}
