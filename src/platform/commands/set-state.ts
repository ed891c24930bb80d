import type { HostProgram } from '../../ctl/context.ts'
import { oneLine } from '../../ctl/text.ts'
import { findUid, type Kind } from './find.ts'

/** Enables or disables what a word names. @param what for the note: `The API key` */
export const setStateOf =
  (kind: Kind, what: string) =>
  (isActive: boolean): HostProgram =>
  async ({ client, line, output }) => {
    const [word = ''] = line.arguments
    const uid = await findUid(client, kind, word)
    await client.change('PUT', `${kind.path}/${uid}/state`, { isActive })
    output.note(`${what} ${oneLine(word)} is ${isActive ? 'enabled' : 'disabled'}.`)
    return undefined
  }
