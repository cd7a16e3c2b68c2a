#include "network/files/file_server.hpp"

#include <utility>
#include <vector>

#include "network/address.hpp"
#include "network/blocking_io.hpp"
#include "network/identity.hpp"
#include "network/thread_priority.hpp"

namespace hone {
namespace {

// A node that takes the pieces of a folder from another one asks for nothing meanwhile; its
// connection keeps the folder for the case that it has to come back.
constexpr std::chrono::minutes idle_limit{10};

file_reply problem_reply(const std::string& problem) {
  record_builder<schema::FileReply> reply;
  reply->setProblem(problem);
  return reply.finish();
}

}  // namespace

file_server::file_server(find_folder find, std::size_t max_connections)
    : find_(std::move(find)), connections_(max_connections) {}

void file_server::serve(std::shared_ptr<channel> connection) {
  connections_.start(
      [this, connection] {
        let_messages_pass(thread_work::strangers_and_files);
        answer_requests(*connection);
        connection->shut_down();
      },
      [connection] { connection->shut_down(); });
}

void file_server::answer_requests(channel& to) {
  try {
    conversation with;
    for (;;) answer(to, receive_request(to, idle_limit), with);
  } catch (const std::exception&) {  // the other end has left, or there is no memory for it
  }
}

std::shared_ptr<const offered_folder> file_server::find(const std::string& name) {
  const std::scoped_lock guard(finding_);
  return find_(name);
}

void file_server::answer(channel& to, const file_request& request, conversation& with) {
  const std::string name(view(request->getFolder()));
  std::size_t bytes = 0;
  try {
    if (with.name != name || with.folder == nullptr) {
      with.name = name;
      with.folder = find(name);
    }
    const offered_folder* const folder = with.folder.get();
    if (folder == nullptr) return send_reply(to, problem_reply("there is no " + name));
    if (request->hasPiece()) {
      const auto wanted = request->getPiece();
      if (wanted.getFile() >= folder->files.size())
        return send_reply(to, problem_reply(name + " has fewer files"));
      const offered_file& file = folder->files[wanted.getFile()];
      bytes = size_of_piece(file.bytes, wanted.getNumber());
      if (with.piece.size() < bytes) with.piece.resize(bytes);
      file.read(std::uint64_t{wanted.getNumber()} * piece_bytes, with.piece.data(), bytes);
    }
  } catch (const connection_failed&) {
    throw;
  } catch (const piece_is_coming&) {
    record_builder<schema::FileReply> reply;
    reply->setComing(true);
    return send_reply(to, reply.finish());
  } catch (const std::exception& e) {
    with.folder.reset();  // another one may have its name by now
    return send_reply(to, problem_reply(e.what()));
  }
  record_builder<schema::FileReply> reply;
  if (!request->hasPiece()) {
    reply->setContents(*with.folder->contents);
    reply->setSource(source_of(to, request, with.folder->contents));
  }
  reply->setBytes(bytes);
  send_reply(to, reply.finish());
  bytes_sent_ += bytes;
  write_all(to, with.piece.data(), bytes, message_limit);
}

std::string file_server::source_of(const channel& to, const file_request& request,
                                   const folder_contents& contents) {
  if (!spreads_ || request->getPort() == 0) return "";
  std::uint64_t bytes = 0;
  for (const auto file : contents->getFiles()) bytes += file.getBytes();
  const network_address child{peer_of(to.descriptor()), request->getPort()};
  // Nodes on this machine have addresses that no other machine can reach.
  const std::string branch =
      std::string(is_loopback(child) ? "here " : "") + std::string(view(request->getFolder()));
  if (request->getLost().size() > 0) tree_.forget(branch, std::string(view(request->getLost())));
  return tree_.parent_of(branch, bytes, to_string(child));
}

}  // namespace hone
