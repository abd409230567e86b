# What `cmake --install` installs: the program; headers and static libraries for a user's own kernels, as the CMake
# package `kbench`; the licences of what is inside.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(libraries kbench_options kbench_models kbench_machine kbench_analysis kbench_cpu kbench_profile kbench_schedule kbench_bench kbench_main)
if(KBENCH_HAVE_CUDA)
    list(APPEND libraries kbench_kernels kbench_cupti)
endif()
foreach(library IN LISTS libraries)
    string(REPLACE "kbench_" "" name ${library})
    set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
endforeach()
set_target_properties(kbench_profile PROPERTIES EXPORT_NAME devices)  # kbench::profile is what other programs embed
install(TARGETS kbench)
if(KBENCH_HAVE_CUDA)  # what `kbench attach` puts into a program
    install(TARGETS kbench_attach LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(DIRECTORY profile/python DESTINATION ${CMAKE_INSTALL_DATADIR}/kbench FILES_MATCHING PATTERN "*.py")
endif()
# The program writes its completion and man page itself, from the tables of options.
install(CODE "
    foreach(file bash:bash-completion/completions/kbench zsh:zsh/site-functions/_kbench fish:fish/vendor_completions.d/kbench.fish man:man/man1/kbench.1)
        string(REPLACE : \";\" file \${file})
        list(GET file 0 what)
        list(GET file 1 path)
        get_filename_component(name \${path} NAME)
        get_filename_component(folder \${path} DIRECTORY)
        file(MAKE_DIRECTORY \"${CMAKE_BINARY_DIR}/completion\")
        execute_process(COMMAND \"$<TARGET_FILE:kbench>\" completion \${what} OUTPUT_FILE \"${CMAKE_BINARY_DIR}/completion/\${name}\" COMMAND_ERROR_IS_FATAL ANY)
        file(INSTALL \"${CMAKE_BINARY_DIR}/completion/\${name}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/\${folder}\")
    endforeach()")
install(TARGETS ${libraries} EXPORT kbench-targets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# What other programs embed needs none of the rest, so it has targets and a component of its own.
if(TARGET kbench_profile_library)
    set_target_properties(kbench_profile_library PROPERTIES EXPORT_NAME profile)
    install(TARGETS kbench_profile_library EXPORT kbench-profile-targets COMPONENT profile INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(EXPORT kbench-profile-targets NAMESPACE kbench:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kbench COMPONENT profile)
endif()
install(FILES include/kbench/profile.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kbench COMPONENT profile)
# A user's program may include these headers and no others: include/kbench, and the op kinds.
file(GLOB op_headers CONFIGURE_DEPENDS models/ops/*.h)
list(FILTER op_headers EXCLUDE REGEX "/(list|table)\\.h$")
install(DIRECTORY include/kbench DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} PATTERN profile.h EXCLUDE)
install(FILES ${op_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kbench/ops)

# `kbench attach` puts this folder into PYTHONPATH.
install(DIRECTORY profile/python/ DESTINATION ${CMAKE_INSTALL_DATADIR}/kbench/python FILES_MATCHING PATTERN "*.py"
    PATTERN __pycache__ EXCLUDE)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/kbench)
set(private_folder ${CMAKE_INSTALL_LIBDIR}/kbench)
set(licence_folder ${CMAKE_INSTALL_DOCDIR}/licences)

# The copy of oneDNN that scripts/setup unpacked is not part of the system, so it is installed along.
set(rpath "")
set(kbench_onednn_from_config none)
string(FIND "${dnnl_DIR}" "${CMAKE_SOURCE_DIR}/.deps/onednn/" position)
if(position EQUAL 0)
    install(DIRECTORY .deps/onednn/lib .deps/onednn/include DESTINATION ${private_folder}/onednn)
    install(DIRECTORY .deps/onednn/share/doc/onednn/ DESTINATION ${licence_folder}/onednn)
    file(RELATIVE_PATH from_program /${CMAKE_INSTALL_BINDIR} /${private_folder}/onednn/lib)
    list(APPEND rpath $ORIGIN/${from_program})
    # The build's program is one folder below its root, as the installed one is, so the same relative path works.
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/${private_folder})
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/.deps/onednn ${CMAKE_BINARY_DIR}/${private_folder}/onednn SYMBOLIC)
    file(RELATIVE_PATH kbench_onednn_from_config /${package_folder} /${private_folder}/onednn/lib/cmake/dnnl)
else()
    list(APPEND rpath $<TARGET_FILE_DIR:DNNL::dnnl>)
endif()
if(KBENCH_HAVE_CUDA)
    list(APPEND rpath $<TARGET_FILE_DIR:CUDA::cublas> $<TARGET_FILE_DIR:CUDA::cupti>)
endif()
list(APPEND rpath ${openblas_LIBRARY_DIRS})
# The program is built with the list that is installed. A list that CMake replaces at installation ends in ":", and
# the loader takes an empty entry for the current directory.
set_target_properties(kbench PROPERTIES INSTALL_RPATH "${rpath}" BUILD_WITH_INSTALL_RPATH ON)
if(TARGET kbench_attach)
    set_target_properties(kbench_attach PROPERTIES INSTALL_RPATH $<TARGET_FILE_DIR:CUDA::cupti> BUILD_WITH_INSTALL_RPATH ON)
endif()

install(EXPORT kbench-targets NAMESPACE kbench:: DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/kbench-config.cmake.in ${CMAKE_BINARY_DIR}/package/kbench-config.cmake
    INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_INCLUDEDIR NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/kbench-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/package/kbench-config.cmake ${CMAKE_BINARY_DIR}/package/kbench-config-version.cmake
    ${CMAKE_CURRENT_LIST_DIR}/toolkit_workarounds.cmake DESTINATION ${package_folder} COMPONENT profile)

install(FILES LICENSE DESTINATION ${licence_folder}/kbench)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/kbench-profile RENAME copyright COMPONENT profile EXCLUDE_FROM_ALL)
if(KBENCH_CUDNN_FRONTEND_LICENCE)  # its headers are compiled in; cuDNN itself stays where it is
    install(FILES ${KBENCH_CUDNN_FRONTEND_LICENCE} DESTINATION ${licence_folder}/cudnn_frontend)
endif()
get_filename_component(plotly_folder ${KBENCH_PLOTLY} DIRECTORY)
install(FILES ${plotly_folder}/LICENSE.txt DESTINATION ${licence_folder}/plotly OPTIONAL)

# `cpack` packs the installation with what it links (cmake/release.cmake), `cpack -G DEB` the component profile
# (cmake/deb.cmake).
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_VENDOR kbench)
string(TOLOWER ${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR} system)
set(CPACK_PACKAGE_FILE_NAME kbench-${PROJECT_VERSION}-${system}-cpu)
if(KBENCH_HAVE_CUDA)
    set(CPACK_PACKAGE_FILE_NAME kbench-${PROJECT_VERSION}-${system}-cuda${CUDAToolkit_VERSION_MAJOR})
endif()
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/release.cmake)
set(CPACK_KBENCH_PRIVATE_FOLDER ${private_folder})
set(CPACK_KBENCH_LICENCE_FOLDER ${licence_folder})
set(CPACK_KBENCH_PACKAGE_FOLDER ${package_folder})
set(CPACK_KBENCH_COMPILED_IN cli11=${CLI11_DIR}/CLI11Config.cmake nlohmann_json=${nlohmann_json_DIR}/nlohmann_jsonConfig.cmake)
if(KBENCH_HAVE_CUDA)
    list(APPEND CPACK_KBENCH_COMPILED_IN cuda_runtime=${CUDA_cudart_static_LIBRARY})
endif()
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/deb.cmake)
set(CPACK_KBENCH_HAS_PROFILE ${KBENCH_HAVE_CUDA})
include(CPack)
