import { Type, type Static } from 'typebox'
import { absolutePath, positive, strict } from '../config/schema-parts.ts'

const tebibyte = 1_099_511_627_776
const bytes = (fallback: number, description: string) => positive(fallback, tebibyte, description)

/** Cluster definitions: their sources, and the limits of their upload and examination. */
export const Definitions = Type.Object(
  {
    embeddedFile: Type.String({
      ...absolutePath,
      default: '/usr/share/edgehostd/definition.tgz',
      description:
        'Definition placed by the installer of this host; it may be missing and needs no signature. A newer one in a content bundle counts instead.',
    }),
    upload: Type.Object(
      {
        limitBytes: bytes(4_294_967_296, 'Largest archive.'),
        reserveBytes: bytes(536_870_912, 'Space that stays free on the disk of the state folder.'),
        maximum: positive(
          2,
          100,
          'Definitions that are written, and that are checked, at the same time; where more arrive, users take turns.',
        ),
      },
      strict,
    ),
    check: Type.Object(
      {
        seconds: positive(300, 86_400, 'Time limit of a check after the last byte of the archive.'),
        memoryMiB: positive(
          384,
          65_536,
          'Memory of the process that checks; MemoryMax of the unit applies too.',
        ),
      },
      strict,
    ),
    archive: Type.Object(
      {
        members: positive(50_000, 10_000_000, 'Files and folders in an archive.'),
        memberBytes: bytes(2_147_483_648, 'Largest file in an archive.'),
        unpackedBytes: bytes(8_589_934_592, 'Size of an archive when unpacked.'),
        ratio: positive(250, 100_000, 'Unpacked bytes per compressed byte, beyond the first 32 MiB.'),
        textBytes: bytes(16_777_216, 'Largest JSON or YAML file in an archive.'),
        allTextBytes: bytes(268_435_456, 'All JSON and YAML files of an archive together.'),
      },
      strict,
    ),
  },
  strict,
)

/** The section `definitions` of the configuration. */
export type DefinitionSettings = Static<typeof Definitions>
