import { Type, type Static } from 'typebox'
import { absolutePath, positive, strict } from '../config/schema-parts.ts'

const tebibyte = 1_099_511_627_776
const bytes = (fallback: number, description: string) => positive(fallback, tebibyte, description)

/** Cluster definitions: where they come from and what they may cost. */
export const Definitions = Type.Object(
  {
    embeddedFile: Type.String({
      ...absolutePath,
      default: '/usr/share/edgehostd/definition.tgz',
      description:
        'Definition that the installer of this host placed; it may be missing and needs no signature.',
    }),
    upload: Type.Object(
      {
        limitBytes: bytes(4_294_967_296, 'Largest archive.'),
        reserveBytes: bytes(536_870_912, 'What stays free on the disk of the state folder.'),
        maximum: positive(2, 100, 'Uploads at one time.'),
      },
      strict,
    ),
    check: Type.Object(
      {
        seconds: positive(300, 86_400, 'A check may take this long after the last byte of the archive.'),
        memoryMiB: positive(
          384,
          65_536,
          'Memory of the process that checks; MemoryMax of the unit holds too.',
        ),
      },
      strict,
    ),
    archive: Type.Object(
      {
        members: positive(50_000, 10_000_000, 'Files and folders in an archive.'),
        memberBytes: bytes(2_147_483_648, 'Largest file in it.'),
        unpackedBytes: bytes(8_589_934_592, 'All of it, unpacked.'),
        ratio: positive(250, 100_000, 'Unpacked bytes for each compressed one, beyond the first 32 MiB.'),
        textBytes: bytes(16_777_216, 'Largest JSON or YAML file in it.'),
        allTextBytes: bytes(268_435_456, 'All such files together.'),
      },
      strict,
    ),
  },
  strict,
)

/** What an administrator may choose; the section `definitions`. */
export type DefinitionSettings = Static<typeof Definitions>
