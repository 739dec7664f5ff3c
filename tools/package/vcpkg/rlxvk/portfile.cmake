# Builds the tree in which this port lies: `vcpkg install rlxvk --overlay-ports=PATH/tools/package/vcpkg`. The tree of a source archive needs
# no tools for GLSL.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)
set(VCPKG_POLICY_DLLS_IN_STATIC_LIBRARY enabled) # both libraries are always built

vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES program RLXVK_PROGRAM)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}/tools/cmake" OPTIONS ${features} -DRLXVK_INSTALL=ON)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME rlxvk CONFIG_PATH lib/cmake/rlxvk)
vcpkg_fixup_pkgconfig()
if("program" IN_LIST FEATURES)
  # The program finds the digits of `rlxvk train digits` from its folder bin.
  set(tools "${CURRENT_PACKAGES_DIR}/tools/${PORT}")
  vcpkg_copy_tools(TOOL_NAMES rlxvk DESTINATION "${tools}/bin" AUTO_CLEAN)
  file(GLOB digits "${CURRENT_PACKAGES_DIR}/share/rlxvk/digits.*")
  file(COPY ${digits} DESTINATION "${tools}/share/rlxvk")
  file(REMOVE ${digits})
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
