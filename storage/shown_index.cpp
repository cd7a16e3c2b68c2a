#include "storage/shown_index.hpp"

#include "messages/shown_variants.hpp"

namespace hone {

void index_shown(database& db, const schema::RolloutGroup::Reader& group) {
  const group_id id(group.getId());
  for (const variant_id& variant : shown_variants(group.getDraw()))
    db.put_key(family::shown, shown_key(variant, id));
}

void index_all_shown(database& db) {
  constexpr std::size_t groups_per_write = 10'000;
  std::size_t count = 0;
  db.scan<schema::RolloutGroup>(family::groups, "",
                                [&](std::string_view, const record<schema::RolloutGroup>& group) {
                                  index_shown(db, *group);
                                  if (++count % groups_per_write == 0) db.write();
                                  return true;
                                });
}

}  // namespace hone
