import { program } from '../../base/program.ts'
import type { HostProgram } from '../../ctl/client.ts'
import { download } from '../../ctl/download.ts'

/**
 * The download of the trail into a file of this user alone, which is there when it is complete.
 * @param path of the list of the trail in the API
 */
export const downloadAudits =
  (path: string): HostProgram<'file'> =>
  async (context) => {
    const day = new Date().toISOString().slice(0, 10)
    const file = context.line.options.file ?? `${program.daemon}-audit-${day}.tar`
    await download(context, { path: `${path}/download`, file, what: 'the archive' })
    if (file !== '-') context.output.note(`The audit trail is in ${file}.`)
    return undefined
  }
