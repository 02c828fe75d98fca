"""Processes in a grid: `DeviceMesh`, whose rows and columns are process groups."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from plait_distributed._arguments import core
from plait_distributed._process_group import ProcessGroup
from plait_distributed._world import default_group, init_process_group, is_initialized, new_group

__all__ = ["DeviceMesh", "current_mesh", "init_device_mesh"]

_entered: list[DeviceMesh] = []  # by `with mesh:`


def _shape_of(mesh: Any) -> tuple[int, ...]:
    if not isinstance(mesh, (list, tuple)):
        return ()
    return (len(mesh), *_shape_of(mesh[0])) if mesh else (0,)


def _flat(mesh: Any) -> list[int]:
    if isinstance(mesh, (list, tuple)):
        return [rank for part in mesh for rank in _flat(part)]
    return [int(mesh)]


class DeviceMesh:
    """The ranks of a job, or some of them, in a grid of one or more dimensions.

    A process has a group for each dimension: the ranks that differ from its own in this coordinate
    alone. All processes of the job make a mesh with the same arguments.

    Args:
        device_type: ``"cpu"``, or a type of devices that the backend serves, such as
            ``"cuda"``.
        mesh: ranks, as a tensor or nested lists.
        mesh_dim_names: a name for each dimension.

    Raises:
        ValueError: ranks are not different, or names do not fit.
        ValueError: the backend does not serve the devices.

    Example:
        >>> import plait_distributed as dist
        >>> from plait_distributed.device_mesh import DeviceMesh
        >>> dist.init_process_group(init_method="shm:mesh", rank=0, world_size=1)
        >>> mesh = DeviceMesh("cpu", [0], mesh_dim_names=("data",))
        >>> mesh.size(), mesh.get_local_rank("data"), mesh.get_group().size()
        (1, 0, 1)
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        _groups: Sequence[ProcessGroup | None] | None = None,
    ) -> None:
        _check_device(device_type, default_group("DeviceMesh"))
        nested = mesh.tolist() if hasattr(mesh, "tolist") else mesh
        self.device_type = device_type
        self._shape = _shape_of(nested)
        self._ranks = _flat(nested)
        if len(set(self._ranks)) != len(self._ranks) or not self._ranks:
            raise ValueError(f"DeviceMesh: `mesh` must be different ranks, got {nested!r}")
        if math.prod(self._shape) != len(self._ranks):
            raise ValueError(f"DeviceMesh: `mesh` must be a full grid, got {nested!r}")
        names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        if names is not None and (len(names), len(set(names))) != (len(self._shape),) * 2:
            raise ValueError(
                f"DeviceMesh: `mesh_dim_names` must be {len(self._shape)} different names, got "
                f"{names}"
            )
        self.mesh_dim_names = names
        self._rank = default_group("DeviceMesh").rank()
        self._groups = list(self._make_groups() if _groups is None else _groups)
        self._flattened: dict[str, DeviceMesh] = {}

    def _make_groups(self) -> list[ProcessGroup | None]:
        world = default_group("DeviceMesh")
        groups: list[ProcessGroup | None] = []
        for dim in range(len(self._shape)):
            own: ProcessGroup | None = None
            for row in self._rows(dim):
                if row == list(world.ranks):
                    own = world
                    continue
                result = new_group(row, group_desc=f"mesh {dim}")
                own = result if isinstance(result, ProcessGroup) else own
            groups.append(own)
        return groups

    def _rows(self, dim: int) -> list[list[int]]:
        """Return the ranks of each group of a dimension."""
        strides = _strides(self._shape)
        others = [range(n) for i, n in enumerate(self._shape) if i != dim]
        rows = []
        for at in itertools.product(*others):
            where = list(at)
            where.insert(dim, 0)
            first = sum(i * s for i, s in zip(where, strides, strict=True))
            rows.append([self._ranks[first + i * strides[dim]] for i in range(self._shape[dim])])
        return rows

    @property
    def mesh(self) -> Any:
        """The ranks, as an int tensor."""
        return core().tensor(self._ranks, dtype=core().int32).view(self._shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of ranks in each dimension."""
        return self._shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    def size(self, mesh_dim: int | str | None = None) -> int:
        """Return the number of ranks, of all or in one dimension."""
        return len(self._ranks) if mesh_dim is None else self._shape[self._dim(mesh_dim)]

    def _dim(self, mesh_dim: int | str) -> int:
        if isinstance(mesh_dim, str):
            if self.mesh_dim_names is None or mesh_dim not in self.mesh_dim_names:
                raise KeyError(
                    f"DeviceMesh: there is no dimension {mesh_dim!r}, names are "
                    f"{self.mesh_dim_names}"
                )
            return self.mesh_dim_names.index(mesh_dim)
        if not -self.ndim <= mesh_dim < self.ndim:
            raise IndexError(f"DeviceMesh: `mesh_dim` {mesh_dim} of {self.ndim} dimensions")
        return mesh_dim % self.ndim

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Return this process's group of a dimension; without an argument the mesh has one.

        Raises:
            RuntimeError: the mesh has several dimensions, or this process is not in it.
        """
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"DeviceMesh.get_group: `mesh_dim` must be given for {self.ndim} dimensions"
                )
            mesh_dim = 0
        group = self._groups[self._dim(mesh_dim)]
        if group is None:
            raise RuntimeError("DeviceMesh.get_group: this process is not in the mesh")
        return group

    def get_all_groups(self) -> list[ProcessGroup]:
        """Return this process's groups of all dimensions."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def get_rank(self) -> int:
        """Return this process's rank among all."""
        return self._rank

    def get_coordinate(self) -> list[int] | None:
        """Return where this process is in the grid; None if it is not in it."""
        if self._rank not in self._ranks:
            return None
        at, where = self._ranks.index(self._rank), []
        for stride in _strides(self._shape):
            where.append(at // stride)
            at %= stride
        return where

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return this process's rank in its group of a dimension."""
        return self.get_group(mesh_dim).rank()

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        """Return the mesh of this process along some dimensions, given by name."""
        choice = (names,) if isinstance(names, str) else tuple(names)
        if len(choice) == 1 and choice[0] in self._flattened:
            return self._flattened[choice[0]]
        dims = [self._dim(name) for name in choice]
        if choice == self.mesh_dim_names:
            return self
        if dims != sorted(set(dims)):
            raise KeyError(f"DeviceMesh: dimensions must be in the mesh's order, got {choice}")
        here = self.get_coordinate()
        if here is None:
            raise RuntimeError("DeviceMesh: this process is not in the mesh")
        strides = _strides(self._shape)
        parts = [range(n) if i in dims else [here[i]] for i, n in enumerate(self._shape)]
        ranks = [
            self._ranks[sum(i * s for i, s in zip(at, strides, strict=True))]
            for at in itertools.product(*parts)
        ]
        nested = core().tensor(ranks).view([self._shape[dim] for dim in dims])
        groups = [self._groups[dim] for dim in dims]
        return DeviceMesh(self.device_type, nested, mesh_dim_names=choice, _groups=groups)

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """Return the same ranks in one dimension. All processes of the job call it."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ())
        ranks = sorted(self._ranks)
        flat = DeviceMesh(self.device_type, ranks, mesh_dim_names=(name,) if name else None)
        self._flattened[name] = flat
        return flat

    @staticmethod
    def from_group(
        group: ProcessGroup | Sequence[ProcessGroup],
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
    ) -> DeviceMesh:
        """Return the mesh of existing groups, one for each dimension.

        Args:
            group: a group, or a list of them, which needs `mesh` then.
            device_type: ``"cpu"``, or a type of devices that the backend serves, such as
            ``"cuda"``.
            mesh: the ranks.
            mesh_dim_names: a name for each dimension.
        """
        groups = [group] if isinstance(group, ProcessGroup) else list(group)
        if mesh is None:
            if len(groups) != 1:
                raise ValueError("DeviceMesh.from_group: `mesh` must be given for several groups")
            mesh = list(groups[0].ranks)
        return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _groups=groups)

    def __enter__(self) -> DeviceMesh:
        _entered.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _entered.pop()

    def _key(self) -> tuple[Any, ...]:
        return tuple(self._ranks), self._shape, self.mesh_dim_names, self.device_type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        names = f", mesh_dim_names={self.mesh_dim_names}" if self.mesh_dim_names else ""
        return f"DeviceMesh({self.device_type!r}, {self.mesh.tolist()}{names})"

    def __deepcopy__(self, memo: Any) -> DeviceMesh:
        return self


def _strides(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]


def _check_device(device_type: str, world: ProcessGroup) -> None:
    if not world.serves(device_type):
        raise ValueError(
            "DeviceMesh: `device_type` must be 'cpu' or a type of devices that the backend serves; "
            f"{world.backend!r} does not serve {device_type!r}"
        )


def current_mesh(caller: str) -> DeviceMesh:
    """Return the mesh of the innermost ``with``, or that of all processes.

    Args:
        caller: The name for messages of errors.

    Example:
        >>> import plait_distributed as dist
        >>> from plait_distributed.device_mesh import current_mesh
        >>> dist.init_process_group(init_method="shm:current", rank=0, world_size=1)
        >>> current_mesh("example")
        DeviceMesh('cpu', [0])
        >>> dist.destroy_process_group()
    """
    if _entered:
        return _entered[-1]
    world = default_group(caller)
    return DeviceMesh(world.device_type, list(world.ranks))


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """Return all ranks in a grid, the last dimension varying fastest.

    Without a process group one is made, with the launcher's variables.

    Args:
        device_type: ``"cpu"``, or a type of devices that the backend serves, such as
            ``"cuda"``.
        mesh_shape: the number of ranks in each dimension.
        mesh_dim_names: a name for each dimension.
        backend_override: None.

    Raises:
        RuntimeError: the product of the shape is not the number of processes.

    Example:
        >>> import plait_distributed as dist
        >>> from plait_distributed.device_mesh import init_device_mesh
        >>> dist.init_process_group(init_method="shm:grid", rank=0, world_size=1)
        >>> mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
        >>> mesh["model"].size()
        1
        >>> dist.destroy_process_group()
    """
    if backend_override is not None:
        raise NotImplementedError("init_device_mesh: `backend_override` must be None")
    if not is_initialized():
        init_process_group("nccl" if device_type == "cuda" else None)
    world = default_group("init_device_mesh")
    _check_device(device_type, world)
    shape = tuple(int(n) for n in mesh_shape)
    if math.prod(shape) != world.size() or min(shape, default=0) < 1:
        raise RuntimeError(
            f"init_device_mesh: `mesh_shape` must have the product {world.size()}, the number of "
            f"processes; got {shape}"
        )
    grid = core().arange(world.size()).view(shape)
    return DeviceMesh(device_type, grid, mesh_dim_names=mesh_dim_names)
