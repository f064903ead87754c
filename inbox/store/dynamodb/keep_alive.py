"""Keep-alive probes on idle connections to DynamoDB.

NAT gateways and Network Load Balancers of AWS drop connections that were idle for 350 seconds, and tell neither end.
The next call on such a connection would time out. With botocore's `tcp_keepalive` alone, Linux sends the first probe
after two hours.
"""

import socket
import sys
from typing import Any

import botocore
import structlog

_IDLE_SECONDS = 60
# A connection is closed after this many probes without a response.
_INTERVAL_SECONDS = 15
_MAX_PROBES = 4

if sys.platform == "darwin":
    _IDLE_OPTION = socket.TCP_KEEPALIVE
else:
    _IDLE_OPTION = socket.TCP_KEEPIDLE
_OPTIONS = {
    _IDLE_OPTION: _IDLE_SECONDS,
    socket.TCP_KEEPINTVL: _INTERVAL_SECONDS,
    socket.TCP_KEEPCNT: _MAX_PROBES,
}

_log = structlog.get_logger()


def set_keep_alive_times(client: Any) -> None:
    """Sets when the sockets that the client opens send probes. Its configuration has to contain `tcp_keepalive`."""
    try:
        # botocore has no setting for socket options.
        options = client._endpoint.http_session._socket_options
    except AttributeError:
        # Another version of botocore. Only calls after a long pause may take a timeout longer.
        _log.warning("keep-alive times not set", botocore=botocore.__version__)
        return
    options.extend((socket.IPPROTO_TCP, option, value) for option, value in _OPTIONS.items())
