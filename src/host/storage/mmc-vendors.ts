// Names of the manufacturer ids of eMMC and SD cards, which are numbered separately (JESD84-B51 7.2.1, SD Physical Layer
// 5.2). Neither list is public: these are the ids that the kernel (drivers/mmc/core/card.h) and mmc-utils name. An id that
// several makers use, or that the two sources name differently, is left out.

const emmc: Readonly<Record<number, string>> = {
  0x11: 'Toshiba',
  0x13: 'Micron',
  0x15: 'Samsung',
  0x37: 'KingMax',
  0x45: 'SanDisk',
  0x70: 'Kingston',
  0x90: 'SK hynix',
  0xfe: 'Micron',
}

const sd: Readonly<Record<number, string>> = {
  0x01: 'Panasonic',
  0x03: 'SanDisk',
  0x08: 'Silicon Power',
  0x09: 'ATP',
  0x1c: 'Transcend',
  0x1e: 'Transcend',
  0x1f: 'Kingston',
  0x28: 'Lexar',
  0x30: 'SanDisk',
  0x31: 'Silicon Power',
  0x41: 'Kingston',
  0x5d: 'Swissbit',
  0x74: 'Transcend',
  0x76: 'Patriot',
  0x9e: 'PNY',
  0x9f: 'Kingston',
}

/**
 * The maker of a card.
 * @param type the attribute `type` in sysfs: `MMC` or `SD`
 * @param manufacturer the attribute `manfid` in sysfs, for example `0x000015`
 */
export function mmcVendorOf(type: string, manufacturer: string): string | undefined {
  const id = Number(manufacturer || NaN)
  return type === 'MMC' ? emmc[id] : type === 'SD' ? sd[id] : undefined
}
