import { parseYaml } from '../format/parse-yaml.ts'
import { parseProfile, type Text } from './read-profile.ts'

/** A profile in a file as the platform exports it: JSON or YAML. `isYaml`: which of them. */
export function parseExport(text: Text): ReturnType<typeof parseProfile> & { readonly isYaml: boolean } {
  const isYaml = !isJson(text)
  return { ...parseProfile(text, isYaml ? { parse: parseYaml } : {}), isYaml }
}

/** Decided by the file name; if that has no known extension, by the first character of the content. */
const isJson = ({ place, content }: Text): boolean =>
  /\.json$/i.test(place) || (!/\.ya?ml$/i.test(place) && /^\s*[{[]/.test(content))
