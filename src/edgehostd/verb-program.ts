import { text } from 'node:stream/consumers'
import { writeOutput } from '../program/standard-output.ts'
import { answerOrder } from '../verbs/verb.ts'
import { verbs } from './verbs.ts'

/**
 * `verb.cjs NAME` does one verb of ours as root, in a transient unit with the sandbox of the verb, with its input on standard input, and writes
 * `VerbAnswer`.
 */
async function main(): Promise<void> {
  const [, , name = ''] = process.argv
  writeOutput(`${JSON.stringify(await answerOrder(verbs, name, await text(process.stdin)))}\n`)
  // Ends at once, even where a verb has left something running.
  process.exit(0)
}

void main()
