import { Document, visit } from 'yaml'
import { escapeForYaml, needsEscapes } from './json.ts'
import { parsePlain } from './plain-scalar.ts'

// What readers of YAML 1.1 know: base 60, dates, and the keys for a merge and a value.
const otherThanText = /^(?:<<$|=$|[-+]?[0-9][0-9_]*(?::[0-9]|$)|[0-9]{4}-[0-9]{1,2}-[0-9])/

/**
 * Writes a value as YAML that readers of 1.1, of 1.2 and go-yaml read alike: a text that one of them would take for another type
 * is in quotes. @throws RangeError for a value that is nested too deeply
 */
export function writeYaml(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false })
  visit(document, {
    Scalar(_key, node) {
      const { value: text } = node
      if (typeof text !== 'string') return
      if (typeof parsePlain(text) !== 'string' || otherThanText.test(text) || needsEscapes(text))
        node.type = 'QUOTE_DOUBLE'
    },
  })
  return escapeForYaml(document.toString({ lineWidth: 0, doubleQuotedAsJSON: true }))
}
