// The names of groups that are made of members of another group, which is open.
#ifndef PLAIT_COLLECTIVES_SUBGROUP_HPP
#define PLAIT_COLLECTIVES_SUBGROUP_HPP
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace plait::collectives {

// A name is that of the other group, '/' or '!', and more. Behind it may be a list of the members,
// by their ranks in the other group:
//   NAME/3@0,2  all members of the other group have called for it, so it is not made if that breaks
//   NAME/3&0,2  only these have
// Without a list, a group of as many members has the same ranks, and all have called.
// So whoever waits for the members knows which processes they are.
template <class Parent>  // a pointer
struct Subgroup {
  std::string name;  // without the list
  Parent parent{};   // nullptr: the group is made of none
  std::vector<uint32_t> ranks;
  bool by_all = false;
};

// `find` returns the open group of a name, or nullptr; `size` its number of members.
template <class Parent, class Find, class Size>
Subgroup<Parent> find_parent(const std::string &text, uint32_t members, Find &&find, Size &&size) {
  Subgroup<Parent> result{text, Parent{}, {}, false};
  const size_t end = text.find_last_not_of("0123456789,");
  const bool listed =
      end != std::string::npos && end + 1 < text.size() && (text[end] == '@' || text[end] == '&');
  const std::string name = listed ? text.substr(0, end) : text;
  for (size_t at = name.find_last_of("/!"); at != std::string::npos && at > 0 && !result.parent;
       at = name.find_last_of("/!", at - 1))
    result.parent = find(name.substr(0, at));
  if (!result.parent) return result;
  result.name = name;
  result.by_all = !listed || text[end] == '@';
  const uint32_t all = size(result.parent);
  for (size_t at = end + 1; listed && at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string number = text.substr(at, comma - at);
    if (number.empty() || number.size() > 9 || std::stoul(number) >= all) break;
    result.ranks.push_back(uint32_t(std::stoul(number)));
    at = comma + 1;
  }
  if (!listed && members == all)
    for (uint32_t r = 0; r < all; r++) result.ranks.push_back(r);
  if (result.ranks.size() != members) result.ranks.clear();  // they are not known
  return result;
}

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_SUBGROUP_HPP
