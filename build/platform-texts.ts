// Prints the manual page and the completion of edgeplatformctl as JSON, for the package. A process of its own, since the names of the
// program are a constant of it.
import './as-platform.ts'
import { bashCompletion } from '../src/ctl/completion.ts'
import { commandTable } from '../src/ctl/platform-nouns.ts'
import { manualPage, ofPlatform } from './manual.ts'

console.log(
  JSON.stringify({
    manual: manualPage({ table: commandTable, ...ofPlatform }),
    completion: bashCompletion(commandTable),
  }),
)
