// Copyright: (c) 2026, The kubenode.memory authors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

//go:build !kube_1_35

package main

// gateDependencies is empty: releases before 1.35 know no dependencies between gates.
func gateDependencies() map[string][]string { return nil }
