// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <type_traits>

/// What scripts/mutants puts beside a statement or in the place of an operator: what was written and the
/// change that it is drawn for, in one program. The environment variable MUTANT is the number of the change in
/// force (none: the code as it was written); MUTANTS_MET is a file that gets the numbers of all changes that
/// would have given another value, and of statements that would not have run.
/// `a - mutants::minus<7> - b` is a - b, or a + b where change 7 is in force: both operators bind equally, so
/// that nothing around them has to be read.
namespace mutants {

inline constexpr int most = 1 << 16;  ///< numbers are below this
inline std::array<bool, most> met_already{};

inline void write_met(int number, const char* path) {
  if (met_already.at(static_cast<std::size_t>(number))) return;
  met_already.at(static_cast<std::size_t>(number)) = true;
  const std::string line = std::to_string(number) + "\n";
  const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0 || ::write(file, line.data(), line.size()) < 0) std::abort();
  ::close(file);
}

inline bool in_force(int number, bool differs) {
  static const char* const chosen = std::getenv("MUTANT");
  static const int in_force_number = chosen ? std::atoi(chosen) : -1;
  static const char* const met = std::getenv("MUTANTS_MET");
  if (met && differs) write_met(number, met);
  return number == in_force_number;
}

/// The changed value where the change is in force.
template <int N, class T>
T either(const T& written, const T& changed) {
  return in_force(N, !(written == changed)) ? changed : written;
}

/// Whether two values differ, where that can be asked.
template <class T>
bool differ(const T& a, const T& b) {
  if constexpr (requires { static_cast<bool>(a == b); })
    return !static_cast<bool>(a == b);
  else
    return true;
}

/// `if (mutants::kept<N>()) statement;`
template <int N>
bool kept() {
  return !in_force(N, true);
}
/// `if (mutants::leaves<N>()) return;`
template <int N>
bool leaves() {
  return in_force(N, true);
}
/// `a && (mutants::lifted<N>() || b)`
template <int N>
bool lifted() {
  return in_force(N, true);
}
/// A mark that the program comes by here.
template <int N>
bool meets() {
  static const char* const met = std::getenv("MUTANTS_MET");
  if (!met_already[N] && met) write_met(N, met);
  return true;
}

/// The value, or nothing.
template <int N, class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
T dropped(const T& value) {
  return in_force(N, differ(value, T{})) ? T{} : value;
}
/// What is written first, or the other.
template <int N, class T>
const T& first(const T& written, const T& other) {
  return in_force(N, differ(written, other)) ? other : written;
}
template <int N, class A, class B>
  requires(!std::is_same_v<A, B> && std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
A first(const A& written, const B& other) {
  return in_force(N, differ(written, static_cast<A>(other))) ? static_cast<A>(other) : written;
}
/// A number, or a larger one.
template <int N, class T>
T number(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return in_force(N, true) ? (value == 0 ? 1 : 2 * value) : value;
  else
    return in_force(N, true) ? value + 1 : value;
}
/// Makes a variable what it is when it is made.
template <int N, class T>
void reset(T& value) {
  static const T made{};
  if (in_force(N, differ<T>(value, made))) value = T{};
}

// The left operand on its way to the right one, for each of the operators.
template <int N>
struct Minus {};
template <int N>
struct Plus {};
template <int N>
struct Times {};
template <int N>
struct Over {};
template <int N>
struct Less {};
template <int N>
struct Greater {};
template <int N>
struct Add {};
template <int N>
struct Forgets {};
template <int N>
inline constexpr Minus<N> minus{};
template <int N>
inline constexpr Plus<N> plus{};
template <int N>
inline constexpr Times<N> times{};
template <int N>
inline constexpr Over<N> over{};
template <int N>
inline constexpr Less<N> less{};
template <int N>
inline constexpr Greater<N> greater{};
template <int N>
inline constexpr Add<N> add{};
template <int N>
inline constexpr Forgets<N> forgets{};
template <class Change, class A>
struct Left {
  A value;
};

template <class A, int N>
auto operator-(const A& a, Minus<N>) {
  return Left<Minus<N>, A>{a};
}
template <class A, int N>
auto operator+(const A& a, Plus<N>) {
  return Left<Plus<N>, A>{a};
}
template <class A, int N>
auto operator*(const A& a, Times<N>) {
  return Left<Times<N>, A>{a};
}
template <class A, int N>
auto operator/(const A& a, Over<N>) {
  return Left<Over<N>, A>{a};
}
template <class A, int N>
auto operator<(const A& a, Less<N>) {
  return Left<Less<N>, A>{a};
}
template <class A, int N>
auto operator>(const A& a, Greater<N>) {
  return Left<Greater<N>, A>{a};
}

template <int N, class A, class B>
auto operator-(const Left<Minus<N>, A>& a, const B& b) {
  return either<N, decltype(a.value - b)>(a.value - b, a.value + b);
}
template <int N, class A, class B>
auto operator+(const Left<Plus<N>, A>& a, const B& b) {
  return either<N, decltype(a.value + b)>(a.value + b, a.value - b);
}
template <int N, class A, class B>
auto operator*(const Left<Times<N>, A>& a, const B& b) {
  using Product = decltype(a.value * b);
  if constexpr (std::is_integral_v<B>)
    if (b == 0)
      return in_force(N, true) ? (std::abort(), Product{}) : Product{};  // the changed program dies here
  return either<N, Product>(a.value * b, a.value / b);
}
template <int N, class A, class B>
auto operator/(const Left<Over<N>, A>& a, const B& b) {
  return either<N, decltype(a.value / b)>(a.value / b, a.value * b);
}
template <int N, class A, class B>
bool operator<(const Left<Less<N>, A>& a, const B& b) {
  return either<N, bool>(a.value < b, a.value <= b);
}
template <int N, class A, class B>
bool operator>(const Left<Greater<N>, A>& a, const B& b) {
  return either<N, bool>(a.value > b, a.value >= b);
}

/// `a += mutants::add<N> += b`: assignments bind from the right.
template <int N, class B>
auto operator+=(Add<N>, const B& b) {
  return Left<Add<N>, B>{b};
}
template <class A, int N, class B>
A& operator+=(A& a, const Left<Add<N>, B>& b) {
  return in_force(N, !(b.value == B{})) ? a -= b.value : a += b.value;
}

/// `a += mutants::forgets<N> += b`: or a = b.
template <int N, class B>
auto operator+=(Forgets<N>, const B& b) {
  return Left<Forgets<N>, std::decay_t<const B&>>{b};
}
template <class A, int N, class B>
A& operator+=(A& a, const Left<Forgets<N>, B>& b) {
  if (in_force(N, differ<A>(a, A{}))) return a = b.value;
  return a += b.value;
}

/// 1, or 0.
template <int N>
int one() {
  return in_force(N, true) ? 0 : 1;
}
/// `if (mutants::denied<N>() != static_cast<bool>(condition))`
template <int N>
bool denied() {
  return in_force(N, true);
}

/// std::max and std::min, or what comes last.
template <int N, class T>
T last_max(const T& a, const T& b) {
  return either<N, T>(std::max(a, b), b);
}
template <int N, class T>
T last_min(const T& a, const T& b) {
  return either<N, T>(std::min(a, b), b);
}

/// std::max, or std::min.
template <int N, class T, class... Rest>
T greatest(const T& a, const T& b, const Rest&... order) {
  return either<N, T>(std::max(a, b, order...), std::min(a, b, order...));
}
template <int N, class T>
T greatest(std::initializer_list<T> values) {
  return either<N, T>(std::max(values), std::min(values));
}
/// std::min, or std::max.
template <int N, class T, class... Rest>
T least(const T& a, const T& b, const Rest&... order) {
  return either<N, T>(std::min(a, b, order...), std::max(a, b, order...));
}
template <int N, class T>
T least(std::initializer_list<T> values) {
  return either<N, T>(std::min(values), std::max(values));
}

}  // namespace mutants
