# Chart.js, which reports are drawn by: neuroshard_report_assets() embeds it and the files of
# neuroshard/report/page/assets/.
find_file(NEUROSHARD_CHART_LIBRARY chart.min.js
  PATHS /usr/share/javascript/chart.js PATH_SUFFIXES share/javascript/chart.js
  DOC "Chart.js 3, minified")
if(NOT NEUROSHARD_CHART_LIBRARY)
  message(FATAL_ERROR "chart.min.js: expected Chart.js 3, found none: install Debian's package "
    "libjs-chart.js (scripts/setup.sh does), or name the file by -DNEUROSHARD_CHART_LIBRARY=FILE")
endif()
file(READ ${NEUROSHARD_CHART_LIBRARY} NEUROSHARD_CHART_LIBRARY_TEXT)
if(NOT NEUROSHARD_CHART_LIBRARY_TEXT MATCHES "Chart\\.js v3\\.")
  message(FATAL_ERROR "${NEUROSHARD_CHART_LIBRARY}: expected Chart.js 3, which names itself in its "
    "first lines, got something else")
endif()

# neuroshard_report_assets(OUTPUT): writes the source file OUTPUT; again whenever a file changes.
function(neuroshard_report_assets output)
  set(folder ${PROJECT_SOURCE_DIR}/neuroshard/report/page)
  # What comes later uses what comes before; then a page of plans, or one of a training.
  set(SCRIPT text.js table.js charts.js page.js)
  set(PLAN_SCRIPT plan_charts.js sections.js evidence.js report.js)
  set(TRAINING_SCRIPT training.js)
  foreach(part SCRIPT PLAN_SCRIPT TRAINING_SCRIPT)
    set(NEUROSHARD_REPORT_${part} "")
    foreach(script ${${part}})
      file(READ ${folder}/assets/${script} text)
      string(APPEND NEUROSHARD_REPORT_${part} "${text}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/assets/${script})
    endforeach()
  endforeach()
  file(READ ${folder}/assets/report.html NEUROSHARD_REPORT_PAGE)
  file(READ ${folder}/assets/report.css NEUROSHARD_REPORT_STYLE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/assets/report.html
    ${folder}/assets/report.css ${NEUROSHARD_CHART_LIBRARY})
  configure_file(${folder}/report_assets.cpp.in ${output} @ONLY)
endfunction()
