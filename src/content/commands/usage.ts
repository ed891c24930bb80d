import type { ContentUsage } from '../schemas.ts'
import type { Context } from '../../ctl/context.ts'
import { renderFacts, type Fact } from '../../ctl/facts.ts'
import { plural } from '../../ctl/text.ts'
import { amount } from '../../ctl/amount.ts'

/** `edgehostctl content usage`. */
export async function showUsage({ client, output }: Context): Promise<undefined> {
  const usage = await client.get<ContentUsage>('/v1/edge-mgmt/content/usage', ['bundles', 'fileSystem'])
  await output.show(usage, (paper) => renderFacts(factsOf(usage), paper))
  return undefined
}

function factsOf(usage: ContentUsage): Fact[] {
  const { directory, mountPoint, type, totalBytes, freeBytes, reserveBytes, reservedBytes, availableBytes } =
    usage.fileSystem
  const damaged: Fact[] =
    usage.damagedBlobs > 0
      ? [
          {
            label: 'Damaged',
            lines: [
              `${plural(usage.damagedBlobs, 'blob')} of ${amount(usage.damagedBytes)}; upload again the bundles that edgehostctl content list shows as damaged`,
            ],
            mood: 'bad',
          },
        ]
      : []
  const incomplete: Fact[] = usage.isComplete
    ? []
    : [
        {
          label: 'Records',
          lines: [
            'the record of a bundle is damaged, so no content is removed: journalctl -u edgehostd -p warning',
          ],
          mood: 'bad',
        },
      ]
  return [
    { label: 'Bundles', lines: [`${usage.bundles}, ${amount(usage.bundleBytes)} in all`] },
    {
      label: 'Stored',
      lines: [`${amount(usage.storedBytes)}; shared blobs save ${amount(usage.sharedBytes)}`],
    },
    { label: 'Unfinished', lines: [`uploads of ${amount(usage.uploadBytes)}`] },
    ...damaged,
    ...incomplete,
    { label: 'Folder', lines: [directory] },
    {
      label: 'File system',
      lines: [`${type} on ${mountPoint}, ${amount(totalBytes)}, ${amount(freeBytes)} free`],
    },
    {
      label: 'Kept free',
      lines: [`${amount(reserveBytes)}; running uploads still need ${amount(reservedBytes)}`],
    },
    {
      label: 'Available',
      lines: [`${amount(availableBytes)} for a new upload`],
      ...(availableBytes > 0 ? {} : { mood: 'warning' as const }),
    },
  ]
}
