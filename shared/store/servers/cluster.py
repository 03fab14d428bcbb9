"""Client of a Redis Cluster: each command goes to the node that serves the slot of its site.

redis-py's own client asks the cluster when it is made, so a part could not start while the cluster
is down, and repeats commands after a lost connection; here a command is sent again only if a node
says that it has not run it.
"""

from __future__ import annotations

from typing import Any

import redis
from redis.client import Pipeline
from redis.connection import parse_url
from redis.exceptions import AskError, ClusterDownError, MovedError, TryAgainError
from redis.exceptions import ConnectionError as DownError
from redis.exceptions import TimeoutError as LateError

from shared.config.redis_address import Host, RedisAddress
from shared.store.client import Command, KeptConnections, kept_connections
from shared.store.servers.slots import ClusterMap, ask, slot_of

_REDIRECTS = 5
_WAITS = ("WAIT", "WAITAOF", "INFO")
_LOAD = ("SCRIPT", "LOAD")
"""Of the script that the next command calls."""
_DOUBTFUL = (DownError, LateError, ClusterDownError, TryAgainError)
"""Errors after which the map may be wrong."""


class ClusterClient(redis.Redis):
    """As redis.Redis; commands without a key go to the node of the keys that belong to no site."""

    def __init__(self, address: RedisAddress, waits: dict[str, Any]) -> None:
        """Create a client; `waits` are options of redis-py."""
        options: Any = parse_url(address.plain) | waits  # type: ignore[no-untyped-call]
        if address.tls:
            from shared.store.servers.tls import TlsConnection

            options["connection_class"] = TlsConnection
        super().__init__(connection_pool=redis.ConnectionPool(**options))
        self.map = ClusterMap(address.hosts, lambda host: _node(options, host))
        self.cluster_connections = ClusterConnections(self.map)

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Run one command on the node of its key."""
        node = self.map.node(slot_of(args))
        for _ in range(_REDIRECTS):
            try:
                return ask(node, *args, **options)
            except MovedError as error:
                node = self.map.moved(error)
            except AskError as error:
                pipe = self.map.at((error.host, error.port)).pipeline(transaction=False)
                ask(pipe, "ASKING")
                ask(pipe, *args, **options)
                return pipe.execute()[1]
            except _DOUBTFUL:
                self.map.doubt()
                raise
        raise DownError("the cluster redirects in a circle")

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Pipeline:  # noqa: ARG002  # as redis-py
        """Return a pipeline that is split by node, or with `transaction` by slot."""
        return ClusterPipeline(self, transaction)

    def close(self) -> None:
        """Close all connections."""
        super().close()
        self.map.close()


def _guarded(command: Command) -> Command:
    """Return the call of a script with one more key, of the same slot, that never exists.

    Scripts name some of their keys themselves, and would fail half-way at one that has been moved
    already. With a missing key among those that are named, the node of a slot that is being moved
    runs no script at all (TRYAGAIN).
    """
    if command[0] != "EVALSHA":
        return command
    name, digest, number, first, *rest = command
    absent, others = str(first).partition("}")[0] + "}:absent", int(number) - 1
    return (name, digest, others + 2, first, *rest[:others], absent, *rest[others:])


def _node(options: dict[str, Any], host: Host) -> redis.Redis:
    place = {"host": host[0], "port": host[1], "db": 0}
    return redis.Redis(connection_pool=redis.ConnectionPool(**(options | place)))


class ClusterPipeline(Pipeline):
    """Commands of any sites. With `transaction` those of each slot are one transaction."""

    def __init__(self, client: ClusterClient, transaction: bool) -> None:
        super().__init__(client.connection_pool, client.response_callbacks, transaction, None)
        self._client, self._atomic = client, transaction

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Add one command; with WATCH, bind to the node of its key."""
        if args[0] == "WATCH" and not self.watching:
            self.reset()
            self.connection_pool = self._client.map.node(slot_of(args)).connection_pool
        return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Run the commands; return their replies in order."""
        try:
            if self.watching or self.explicit_transaction:
                return super().execute(raise_on_error)
            stack, self.command_stack = self.command_stack, []
            replies = self._execute(stack)
        except (AskError, *_DOUBTFUL):
            self._client.map.doubt()
            raise
        if raise_on_error:
            self.raise_first_error(stack, replies)  # type: ignore[no-untyped-call]
        return replies

    def _execute(self, stack: list[Any]) -> list[Any]:
        parts: dict[tuple[redis.Redis, int], list[int]] = {}
        for at, (args, _) in enumerate(stack):
            slot = slot_of(args)
            part = self._client.map.node(slot), slot if self._atomic else 0
            parts.setdefault(part, []).append(at)
        replies: list[Any] = [None] * len(stack)
        for (node, _), places in parts.items():
            found = self._part(node, [stack[at] for at in places])
            for at, reply in zip(places, found, strict=True):
                replies[at] = reply
                if isinstance(reply, AskError) and not self._atomic:
                    args, options = stack[at]
                    replies[at] = self._client.execute_command(*args, **options)
        return replies

    def _part(self, node: redis.Redis, stack: list[Any]) -> list[Any]:
        pipe = node.pipeline(transaction=self._atomic)
        pipe.command_stack = list(stack)
        try:
            return pipe.execute(raise_on_error=False)
        except MovedError as error:  # of a transaction, of which nothing was run
            pipe = self._client.map.moved(error).pipeline(transaction=True)
            pipe.command_stack = list(stack)
            return pipe.execute(raise_on_error=False)


class ClusterConnections:
    """Kept connections to each node, used as those to one; several nodes are asked at once."""

    def __init__(self, nodes: ClusterMap) -> None:
        self._map = nodes

    def exchange(self, *commands: Command) -> list[Any]:
        """Return the replies; commands of several nodes need not be run in order."""
        return self.receive(self.send(*commands), len(commands))

    def send(self, *commands: Command) -> Any:
        """Send each command to its node; return what `receive` takes."""
        commands = tuple(map(_guarded, commands))
        parts: dict[KeptConnections, list[int]] = {}
        for at, command in enumerate(commands):
            if command[0] not in _WAITS:  # for what was written before on the same connection
                keyed = commands[at + 1] if command[:2] == _LOAD else command
                node = kept_connections(self._map.node(slot_of(keyed)))
            parts.setdefault(node, []).append(at)
        sent: list[tuple[KeptConnections, Any, list[int]]] = []
        try:
            for node, places in parts.items():
                sent.append((node, node.send(*(commands[at] for at in places)), places))
        except BaseException:
            self._map.doubt()
            self.abandon((commands, sent))
            raise
        return commands, sent

    def receive(self, connection: Any, count: int) -> list[Any]:
        """Return the replies; a command that a node redirected was sent again."""
        commands, sent = connection
        replies: list[Any] = [None] * count
        while sent:
            node, of_node, places = sent[0]
            try:
                found = node.receive(of_node, len(places))
            except BaseException:
                self._map.doubt()
                self.abandon((commands, sent[1:]))
                raise
            del sent[0]
            if commands[-1][0] in _WAITS and isinstance(found[0], MovedError):
                return kept_connections(self._map.moved(found[0])).exchange(*commands)
            for at, reply in zip(places, found, strict=True):
                replies[at] = self._settled(commands[at], reply)
        return replies

    def abandon(self, connection: Any) -> None:
        """Wait for no reply of any node."""
        for node, of_node, _ in connection[1]:
            node.abandon(of_node)

    def _settled(self, command: Command, reply: Any) -> Any:
        for _ in range(_REDIRECTS):
            if isinstance(reply, MovedError):
                (reply,) = kept_connections(self._map.moved(reply)).exchange(command)
            elif isinstance(reply, AskError):
                node = self._map.at((reply.host, reply.port))
                _, reply = kept_connections(node).exchange(("ASKING",), command)
            else:
                break
        if isinstance(reply, _DOUBTFUL):
            self._map.doubt()
        return reply
