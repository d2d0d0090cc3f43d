target_sources(pantheon_model PRIVATE
  gguf/file_warmer.cpp gguf/gguf_file.cpp gguf/gguf_metadata.cpp gguf/gguf_parse.cpp gguf/mapped_file.cpp
  gguf/split_name.cpp)
