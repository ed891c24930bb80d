import type { Static } from 'typebox'
import { program } from '../../base/program.ts'
import type { HostProgram } from '../../ctl/client.ts'
import { renderFacts, count, plural } from '../../ctl/layout.ts'
import type { VerifyReply } from '../schemas.ts'

// Every record is read.
const verifyMs = 600_000

/**
 * The verification of the trail; fails where it is not whole.
 * @param path of the list of the trail in the API
 */
export const verifyAudits =
  (path: string): HostProgram<'head'> =>
  async ({ client, line, output }) => {
    const { head } = line.options
    const query = head === undefined ? '' : `?${new URLSearchParams({ head }).toString()}`
    const found = await client.get<Static<typeof VerifyReply>>(
      `${path}/verify${query}`,
      ['count', 'first', 'head', 'isIntact', 'unwritten'],
      verifyMs,
    )
    const { isIntact, problem, unwritten } = found
    await output.show(found, (paper) =>
      renderFacts(
        [
          isIntact
            ? { label: 'Trail', lines: ['whole and unaltered'], mood: 'good' }
            : {
                label: 'Trail',
                lines: [`record ${problem?.number ?? '?'}: ${problem?.message ?? 'damaged'}`],
                mood: 'bad',
              },
          { label: 'Records', lines: [`${count(found.count)}, the oldest is number ${found.first}`] },
          { label: 'Head', lines: [`${found.head.number}:${found.head.hash}`] },
          ...(unwritten > 0
            ? [
                {
                  label: 'Not stored',
                  lines: [
                    `${plural(unwritten, 'record')}, only in the journal: journalctl -u ${program.daemon} -g audit`,
                  ],
                  mood: 'warning' as const,
                },
              ]
            : []),
        ],
        paper,
      ),
    )
    return isIntact ? undefined : 'failed'
  }
