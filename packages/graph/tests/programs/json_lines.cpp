// Reads texts, one a line, each as hexadecimal digits; prints "ok" and the text that the writer
// makes of it, or "error" and the error.
#include <iostream>
#include <string>

#include "json.hpp"

using namespace plait::graph;

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::string text;
    for (size_t i = 0; i + 1 < line.size(); i += 2)
      text += char(std::stoi(line.substr(i, 2), nullptr, 16));
    try {
      const JsonDocument document = JsonDocument::parse(text);
      std::string out;
      write_json(out, document.root());
      std::cout << "ok " << out << "\n";
    } catch (const JsonError &error) {
      std::cout << "error " << error.what() << "\n";
    }
  }
}
