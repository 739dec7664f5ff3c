"""Conan 2: `conan create tools/package/conan` packs the tree in which this recipe lies.

The tree of a source archive (`make dist`) needs no tools for GLSL. A checkout needs make and
glslang.
"""
import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rm, rmdir

TREE = ("include/*", "runtime/*", "glsl/*", "spv/*", "tools/*", "test/*", "prebuilt/*",
        "Makefile", "LICENSE")


class Rlxvk(ConanFile):
    name = "rlxvk"
    description = "Machine-learning graphs on any Vulkan 1.2 device"
    license = "MIT"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "program": [True, False]}
    default_options = {"shared": False, "program": False}

    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._root(), "include", "rlxvk.h"))
        parts = (re.search(rf"RLXVK_VERSION_{part} +(\d+)", text)[1]
                 for part in ("MAJOR", "MINOR", "PATCH"))
        self.version = ".".join(parts)

    def export_sources(self):
        for pattern in TREE:
            copy(self, pattern, self._root(), self.export_sources_folder)

    def configure(self):
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["RLXVK_PROGRAM"] = bool(self.options.program)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder="tools/cmake")
        cmake.build()

    def package(self):
        """The one library that was asked for; Conan writes the files of CMake itself."""
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        lib = os.path.join(self.package_folder, "lib")
        static, shared = ("librlxvk.a", "rlxvk_static.lib"), ("librlxvk.so*", "librlxvk*.dylib",
                                                              "librlxvk.dll.a", "rlxvk.lib")
        for pattern in static if self.options.shared else shared:
            rm(self, pattern, lib)
        if not self.options.shared:
            rm(self, "*.dll", os.path.join(self.package_folder, "bin"))
        for folder in ("cmake", "pkgconfig"):
            rmdir(self, os.path.join(lib, folder))

    def package_info(self):
        shared = bool(self.options.shared)
        self.cpp_info.set_property("cmake_file_name", "rlxvk")
        target = "rlxvk::shared" if shared else "rlxvk::rlxvk"
        self.cpp_info.set_property("cmake_target_name", target)
        msvc = self.settings.get_safe("compiler") == "msvc"
        self.cpp_info.libs = ["rlxvk_static" if msvc and not shared else "rlxvk"]
        if self.settings.os != "Windows" and not shared:
            self.cpp_info.system_libs = ["dl", "m", "pthread"]
