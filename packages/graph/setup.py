"""Build the extension that captures graphs, and the library that runs them without Python."""

from plait_abi.build import Extension, Library, setup, ship_sources

PROGRAMS = ["cpp/*.cpp", "cpp/program/*.cpp"]
RUNTIME = Library(
    "plait_run",
    [*PROGRAMS, "cpp/run/*.cpp"],
    include_dirs=["cpp", "src/plait_graph/include"],
)

setup(
    package="plait_graph",
    generate=[ship_sources("plait_graph", [RUNTIME], ["cpp/*.hpp", "cpp/*/*.hpp"])],
    libraries=[RUNTIME],
    extensions=[
        Extension(
            "plait_graph._graph",
            [
                *PROGRAMS,
                "cpp/run/bytes_on_disk.cpp",
                "cpp/run/file.cpp",
                "cpp/recording/*.cpp",
                "cpp/deferral/*.cpp",
                "cpp/python/*.cpp",
            ],
            flags=["-O2"],
            include_dirs=["cpp", "src/plait_graph/include"],
            requires=["plait_core"],
        )
    ],
)
