// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <utility>

#include "sim/base/shared_list.h"

using namespace convoy;

TEST_CASE("shared list: copies share elements until one is changed") {
  SharedList<int> list{1, 2, 3};
  const SharedList<int> copy = list;
  CHECK(copy == list);
  CHECK(copy.hash() == list.hash());
  CHECK(&copy[0] == &std::as_const(list)[0]);
  list[0] = 7;
  CHECK(copy[0] == 1);
  CHECK(std::as_const(list)[0] == 7);
  CHECK(!(copy == list));
  const int* const own = &std::as_const(list)[0];
  list.push_back(4);
  list.edit().pop_back();
  list[1] = 8;  // shared with nobody: in place
  CHECK(list.size() == 3);
  CHECK((std::as_const(list)[0] == 7 && std::as_const(list)[1] == 8));
  CHECK(own != &copy[0]);
}

TEST_CASE("shared list: equal content is another list, and no list is an empty one") {
  const SharedList<int> one{1}, another{1};
  CHECK(!(one == another));
  SharedList<int> none;
  CHECK(none == SharedList<int>());
  CHECK(none.empty());
  CHECK(none.get().begin() == none.get().end());
  none.push_back(5);
  CHECK(none.back() == 5);
  SharedList<int> copy = none;
  copy.clear();
  CHECK(copy.empty());
  CHECK(none.size() == 1);
}
