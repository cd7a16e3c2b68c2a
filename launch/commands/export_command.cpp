#include <iostream>

#include "evaluation/variant_export.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/document_judge.hpp"
#include "launch/files.hpp"
#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "results/printing.hpp"
#include "results/variants.hpp"
#include "storage/inspection.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

struct export_options {
  std::string variant;
  std::string file;
  std::string task;
  std::string pool;
  std::string form;
  judge_options judge;
  bool unverified = false;
};

// A variant with its task, and the known facts about its origin.
struct found_variant {
  task of;
  variant_document document;
  std::vector<std::string> notes;     // for the head of the file
  std::vector<std::string> ok;        // what was found where it is ok, in words
  std::vector<std::string> problems;  // the same where it is not
  std::vector<std::string> slower{};  // types of device where it is ok and slower than the original
};

void describe_evaluation(const schema::Evaluation::Reader& e, found_variant& found) {
  const std::string type = text(e.getDeviceType());
  if (e.getOutcome() != Outcome::OK) {
    const std::string message = text(e.getMessage());
    const std::string said = std::string(name_of(e.getOutcome())) + " on " + type;
    found.notes.push_back("Judged " + said + ".");
    found.problems.push_back(said + (message.empty() ? "" : " (" + message + ")"));
    return;
  }
  found.ok.push_back((has_score(e) ? fixed(e.getScore(), 2) + " times as fast as the original"
                                   : std::string("correct, not timed,")) +
                     " on " + type);
  found.notes.push_back("Judged " + found.ok.back() + ".");
  if (has_score(e) && e.getScore() < 1) found.slower.push_back(type);
  if (type.starts_with("cpu"))
    found.notes.push_back("That is a processor core; on a GPU the speed-up is another.");
}

// Returns why the variant must not be exported; empty if it is ok on a type of device, or if that
// is not asked for, which a note then says.
std::string refusal_of(const export_options& options, found_variant& found) {
  if (!found.ok.empty()) return "";
  if (options.unverified) {
    found.notes.push_back("Not known to be correct: exported with --unverified.");
    return "";
  }
  std::string why = "no evaluation of it is there";
  for (const std::string& problem : found.problems)
    why = (&problem == &found.problems.front() ? "judged " : why + "; ") + problem;
  return options.variant + ": is not known to be correct: " + why +
         "; --unverified exports it in any case";
}

found_variant find_in_pool(const export_options& options) {
  const pool_inspector pool(find_pool(options.pool));
  const variant_id id = pool.find_variant(options.variant);
  const auto stored = pool.variant(id);
  if (!stored) throw pool_error("the variant " + to_string(id) + " is gone");
  if (!view((*stored)->getProblem()).empty())
    throw pool_error("the variant " + to_string(id) +
                     " is no program: " + text((*stored)->getProblem()));
  for (const auto& t : pool.tasks()) {
    if (task_id(t->getId()) != task_id((*stored)->getTaskId())) continue;
    found_variant found{from_record(*t), {}, {"Variant " + to_string(id) + "."}, {}, {}};
    found.document.options = parse_settings(view((*stored)->getSettings()));
    found.document.cuda = text((*stored)->getCuda());
    found.document.python = text((*stored)->getPython());
    for (const auto& evaluation : pool.evaluations_of(id)) {
      if (evaluation->getScope() == run_scope) describe_evaluation(*evaluation, found);
    }
    return found;
  }
  throw pool_error("the pool does not have the task of the variant " + to_string(id));
}

found_variant read_file(const export_options& options) {
  if (options.task.empty())
    throw std::runtime_error(
        "name the task of the document with --task, or the pool of the variant "
        "with --pool");
  found_variant found{load_task(find_task_file(options.task)), {}, {}, {}, {}};
  const std::string document = read_text(options.variant);
  if (document.starts_with("sweep:"))
    throw std::runtime_error(options.variant +
                             ": is a sweep of documents; `hone corpus expand` writes each of them");
  auto parsed = parse_variant_document(document);
  if (const auto* problem = std::get_if<parse_problem>(&parsed))
    throw std::runtime_error(options.variant + ": " + to_string(*problem));
  found.document = std::get<variant_document>(std::move(parsed));
  if (options.unverified) return found;
  judge_documents(options.judge, {{&found.of, {found.of.name, options.variant, document}}},
                  [&](const document_of_task&, const auto& e) { describe_evaluation(e, found); });
  return found;
}

// Returns "--as torch or --as onefile.cu".
std::string forms_text() {
  std::string text;
  for (const std::string& form : export_forms())
    text += (text.empty() ? "--as " : " or --as ") + form;
  return text;
}

int export_variant(const export_options& options) {
  found_variant found = options.pool.empty() ? read_file(options) : find_in_pool(options);
  if (const std::string refusal = refusal_of(options, found); !refusal.empty()) {
    std::cerr << "hone: " << refusal << "\n";
    return 1;
  }
  for (const std::string& problem : found.problems)
    std::cerr << "hone: this variant was judged " << problem
              << "; there, the file runs the original where results differ\n";
  for (const std::string& type : found.slower)
    std::cerr << "hone: warning: on " << type << " this variant is slower than the original\n";
  const std::string file =
      hone::export_variant(options.form, found.of, found.document, found.notes);
  if (options.file == "-") {
    std::cout << file;
  } else {
    write_text(options.file, file);
    std::cout << options.file << ": " << found.of.name << " as " << options.form;
    for (const std::string& said : found.ok) std::cout << ", " << said;
    std::cout << (found.ok.empty() ? ", unverified\n" : "\n");
  }
  return 0;
}

}  // namespace

void add_export_command(CLI::App& app, command_action& action) {
  auto options = std::make_shared<export_options>();
  CLI::App* command = app.add_subcommand(
      "export", "Judge a variant, and write it as a file that works without Hone");
  command
      ->add_option("variant", options->variant,
                   "a variant document, or with --pool the id of a variant")
      ->required();
  command->add_option("file", options->file, "the file to write; - is standard output")->required();
  command->add_option("--task", options->task,
                      "task of the document: a task file, or the name of one under configs/tasks");
  command->add_option("--pool", options->pool, "a run's pool that has the variant and its task");
  command->add_option("--as", options->form, "form of the file")
      ->check(CLI::IsMember(export_forms()));
  command->add_flag("--unverified", options->unverified,
                    "export a variant that is not known to be correct; a document is not judged");
  add_judge_options(*command, options->judge);
  command->callback([options, &action] {
    if (options->form.empty()) throw CLI::RequiredError("a form: " + forms_text());
    action = [options] { return export_variant(*options); };
  });
}

}  // namespace hone
