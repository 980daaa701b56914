# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The configuration that a kubelet runs with, as it shows it to the API server (configz)."""

from __future__ import annotations

import json
import typing as t
from http import HTTPStatus

SECONDS = 20


class NotAnswered(Exception):
    """The API does not say what the kubelet runs with; the message says why."""


def configz(api: t.Mapping[str, t.Any], node: str) -> t.Mapping[str, t.Any]:
    """Ask the API server, which asks the kubelet.

    :param api: arguments as of kubernetes.core.k8s_info: kubeconfig, context, host, api_key, ca_cert, ...
    :raises NotAnswered: if the library is missing, or there is no such answer
    """
    try:
        from urllib3.exceptions import HTTPError

        connection = _connection(api)
    except ImportError as error:
        raise NotAnswered(f"the Python library kubernetes is missing on the controller ({error})") from error
    try:
        status, text = _get(connection, f"/api/v1/nodes/{node}/proxy/configz")
    except (HTTPError, OSError) as error:
        raise NotAnswered(f"the API cannot be reached: {error}") from error
    if status != HTTPStatus.OK:
        raise NotAnswered(f"the API answers {status} for configz of node {node}: {text[:200]}")
    return _configuration(text, node)


def _get(connection: t.Any, path: str) -> t.Tuple[int, str]:
    """(status, text), through the library's own pool: the calls above it differ from release to release."""
    settings = connection.configuration
    token = settings.auth_settings().get("BearerToken")
    headers = {"Accept": "application/json", **({token["key"]: token["value"]} if token else {})}
    pool = connection.rest_client.pool_manager
    answer = pool.request("GET", settings.host.rstrip("/") + path, headers=headers, timeout=SECONDS, retries=1)
    return answer.status, answer.data.decode("utf-8", "replace")


def _configuration(text: str, node: str) -> t.Mapping[str, t.Any]:
    try:
        found = json.loads(text)["kubeletconfig"]
    except (ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, dict):
        raise NotAnswered(f"the API's answer for configz of node {node} is no configuration of a kubelet")
    return found


def _connection(api: t.Mapping[str, t.Any]) -> t.Any:
    from kubernetes import client, config

    if not api.get("host"):
        try:
            return config.new_client_from_config(config_file=api.get("kubeconfig"), context=api.get("context"))
        except config.ConfigException as error:
            raise NotAnswered(f"the kubeconfig cannot be used: {error}") from error
    settings = client.Configuration()
    settings.host = api["host"]
    settings.verify_ssl = api.get("validate_certs", True)
    settings.ssl_ca_cert = api.get("ca_cert")
    settings.cert_file, settings.key_file = api.get("client_cert"), api.get("client_key")
    settings.proxy = api.get("proxy") or settings.proxy
    if api.get("api_key"):
        settings.api_key = {"authorization": f"Bearer {api['api_key']}"}
    return client.ApiClient(settings)
