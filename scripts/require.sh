# To be sourced: a function that fills virtual environments, of the interpreter $python, and what the
# Python package is built and tested with.
build_packages="nanobind==2.15.0 scikit-build-core==1.1.2"
test_packages="numpy==2.4.6 pytest==9.2.0 mypy==2.4.1"
export PIP_DISABLE_PIP_VERSION_CHECK=1

# require ENV [--no-deps] PACKAGE==VERSION...: installs what the environment does not have.
require() {
  local env=$1 installed missing=() flags=() package
  shift
  [ -x "$env/bin/pip" ] || "$python" -m venv "$env"
  installed=" $("$env/bin/pip" freeze --all | tr '[:upper:]_' '[:lower:]-' |
    sed 's/+cpu$//' | tr '\n' ' ')"
  for package in "$@"; do
    case "$package" in
      --*) flags+=("$package") ;;
      *) [[ $installed == *" $package "* ]] || missing+=("$package") ;;
    esac
  done
  [ ${#missing[@]} -eq 0 ] ||
    "$env/bin/pip" install -q ${flags[@]+"${flags[@]}"} "${missing[@]}"
}
