// fmt's library, compiled from its headers in its place: Debian has it only shared. Compiled where
// nothing but glibc may be needed (NEUROSHARD_SELF_CONTAINED); elsewhere everything is compiled
// alike, so that one compiler cache serves both builds, which FMT_HEADER_ONLY would prevent.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

// The templates that fmt's headers declare as compiled elsewhere, of those that are used.
template auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
template auto thousands_sep_impl(locale_ref loc) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref loc) -> char;

}  // namespace detail
FMT_END_NAMESPACE
