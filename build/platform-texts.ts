// Prints the manual page and the completion of edgeplatformctl as JSON, for the package. A process of its own, since the names of the
// program are a constant of it.
import './as-platform.ts'
import { bashCompletion } from '../src/ctl/help.ts'
import { commandTable } from '../src/edgeplatformctl/nouns.ts'
import { manualPage, ofPlatform } from './manual.ts'

console.log(
  JSON.stringify({
    manual: manualPage({ table: commandTable, ...ofPlatform }),
    completion: bashCompletion(commandTable),
  }),
)
