// SPDX-License-Identifier: MIT
#pragma once

#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace convoy::inline base {

/// A vector whose copies share their elements until one of them is changed, which then gets elements of its
/// own. As long as a copy is kept, the elements that it shares stay what and where they are: their address
/// stands for their content, and two lists are equal where they share it (no element is compared), so that
/// what was computed from a list can be kept under it (memo.h).
///
/// Everything that can change an element makes the elements its own first. Read a list that is not const
/// through std::as_const where its copies are to go on sharing.
template <class Element>
class SharedList {
 public:
  using Vector = std::vector<Element>;

  SharedList() = default;
  SharedList(Vector elements) : elements_(std::make_shared<Vector>(std::move(elements))) {}  // NOLINT
  SharedList(std::initializer_list<Element> elements) : SharedList(Vector(elements)) {}

  const Vector& get() const { return elements_ ? *elements_ : none(); }
  operator const Vector&() const { return get(); }  // NOLINT: it is one
  auto begin() const { return get().begin(); }
  auto end() const { return get().end(); }
  std::size_t size() const { return get().size(); }
  bool empty() const { return get().empty(); }
  const Element& operator[](std::size_t i) const { return get()[i]; }
  const Element& at(std::size_t i) const { return get().at(i); }
  const Element& front() const { return get().front(); }
  const Element& back() const { return get().back(); }

  /// The elements, no longer shared. Valid until this list is copied.
  Vector& edit() {
    if (!elements_)
      elements_ = std::make_shared<Vector>();
    else if (elements_.use_count() > 1)
      elements_ = std::make_shared<Vector>(*elements_);
    return *elements_;
  }
  operator Vector&() { return edit(); }  // NOLINT: it is one
  auto begin() { return edit().begin(); }
  auto end() { return edit().end(); }
  Element& operator[](std::size_t i) { return edit()[i]; }
  Element& at(std::size_t i) { return edit().at(i); }
  Element& front() { return edit().front(); }
  Element& back() { return edit().back(); }
  void push_back(Element element) { edit().push_back(std::move(element)); }
  void pop_back() { edit().pop_back(); }
  void resize(std::size_t size) { edit().resize(size); }
  void clear() { elements_.reset(); }

  /// Whether another list has the same elements; also true where there are none.
  bool is_shared() const { return !elements_ || elements_.use_count() > 1; }
  /// Whether both share their elements, or have none.
  bool operator==(const SharedList& other) const { return elements_ == other.elements_; }
  std::size_t hash() const { return std::hash<const Vector*>{}(elements_.get()); }

 private:
  static const Vector& none() {
    static const Vector empty;
    return empty;
  }

  std::shared_ptr<Vector> elements_;
};

}  // namespace convoy::base
