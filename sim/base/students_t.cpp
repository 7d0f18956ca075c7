// SPDX-License-Identifier: MIT
#include "sim/base/students_t.h"

#include <boost/math/distributions/students_t.hpp>

namespace convoy::inline base {

double students_t_quantile(double degrees_of_freedom, double share) {
  // Without long double: boost fills tables for it before main, and valgrind, whose long double is a double, does
  // not survive that.
  using InDouble = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
  return boost::math::quantile(boost::math::students_t_distribution<double, InDouble>(degrees_of_freedom),
                               share);
}

}  // namespace convoy::base
