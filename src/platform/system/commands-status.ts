import { program } from '../../base/program.ts'
import type { Context } from '../../ctl/client.ts'
import { renderFacts, type Fact, amount, moment, plural, span } from '../../ctl/layout.ts'
import type { PlatformStatus } from './schemas.ts'

/** `status`; fails while a check of the platform fails. */
export async function showStatus({ client, output }: Context): Promise<'failed' | undefined> {
  const status = await client.get<PlatformStatus>('/v1/system/status', [
    ...(['version', 'addresses', 'certificate', 'failing', 'notes', 'state'] as const),
  ])
  await output.show(status, (paper) => renderFacts(factsOf(status), paper))
  return status.failing.length > 0 ? 'failed' : undefined
}

function factsOf({
  addresses,
  certificate,
  failing,
  notes,
  port,
  state,
  unwrittenAudits,
  uptimeSeconds,
  version,
}: PlatformStatus): Fact[] {
  const end = port === 443 ? '' : `:${port}`
  const isUnready = failing.length > 0
  return [
    {
      label: 'State',
      lines: isUnready
        ? [`not ready: ${failing.join(', ')}`, `why: journalctl -u ${program.daemon} -p warning`]
        : ['ready'],
      mood: isUnready ? 'bad' : 'good',
    },
    ...(notes.length === 0
      ? []
      : [
          {
            label: 'Checks',
            lines: [`failing: ${notes.join(', ')}`, `why: journalctl -u ${program.daemon} -p warning`],
            mood: 'warning' as const,
          },
        ]),
    { label: 'Version', lines: [`${program.daemon} ${version}`] },
    { label: 'Running for', lines: [span(uptimeSeconds)] },
    {
      label: 'Address',
      lines: addresses.map((address) => `https://${address.includes(':') ? `[${address}]` : address}${end}`),
    },
    {
      label: 'Certificate',
      lines: [
        certificate.fingerprint,
        `ends at ${moment(certificate.expirationTimestamp)}; ${certificate.isOwn ? 'the platform renews it' : 'the administrator renews it'}`,
      ],
    },
    { label: 'Disk', lines: [`${amount(state.freeBytes)} of ${amount(state.totalBytes)} free`] },
    ...(unwrittenAudits > 0
      ? [
          {
            label: 'Not stored',
            lines: [
              `${plural(unwrittenAudits, 'audit record')}, only in the journal: journalctl -u ${program.daemon} -g audit`,
            ],
            mood: 'warning' as const,
          },
        ]
      : []),
  ]
}
