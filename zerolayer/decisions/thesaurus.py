"""Words that users and policies use for one thing, in English and Chinese.

A user whose line is "dead" asks for the "repair time". Each line is one notion of everyday
services: returns, orders, contracts, bookings, payments, loans, memberships. A word may serve
several notions. English words are compared by stem, Chinese ones wherever they stand.
"""

from __future__ import annotations

import re
from typing import Final

ENGLISH: Final = tuple(
    line.split()
    for line in """
repair fix fault broken dead defect malfunction outage service restore work mend stopped
bound bind commit commitment minimum contract leave locked tied subscription shortest
refund reimburse repay money compensate payout
pay-out payout paid money transfer
stay visit remain bathing sojourn
item items thing things article articles piece pieces
fine penalty late overdue
firewood wood log fire
people person participants participant persons size
bike bicycle bikes bicycles cycle
day daily
travel leave departure depart trip journey start
free gratis grace complimentary
excess deductible
theft steal stolen thief burglary
return back send-back bring-back give-back
exchange swap replace size
deliver delivery ship shipping arrive dispatch courier bring door transport reach parcel post
collect pickup fetch lie ready held hold store shelf reserved
late overdue delay behind delayed tardy
early before premature
cancel withdraw revoke terminate quit leave stop call pull mind
notice terminate quit resign leave cancel
pause freeze suspend interrupt rest hold break
renew extend extension prolong renewal longer again
borrow loan lend keep checkout lent
reserve reservation book booking hold set-aside appointment
lose lost loss missing misplaced stolen property
arrive arrival check gate departure
damage damaged broken defective faulty flawed torn scratch dent crash accident
copy duplicate reprint
correct correction mistake error wrong fix amend
electronic email online digital pdf
paper printed hardcopy letter post
guest visitor friend bring companion
trial try sample
join joining enrol sign-up register registration admission entry enter start
member membership card
admission entrance entry enter door gate inside
wait waiting queue list
child children kid kids son daughter minor young youth boy girl toddler baby
adult adults grown
student students pupil university college study apprentice
senior pensioner retired elderly
single alone solo myself one-person individual
couple couples pair two partner wife husband spouse
group groups party team choir class club
family families household
company companies business firm corporate employer enterprise commercial
private personal household consumer
public authority municipality council government body bodies school ministry
cold cool cooling cooled chilled refrigerate refrigerated fridge insulin frozen
warm hot heat
ordinary normal regular standard usual plain
express fast urgent quick rush priority
special controlled
domestic inland national home
abroad foreign international overseas
weekend saturday sunday
weekday monday tuesday wednesday thursday friday
night nights overnight
pet pets animal dog dogs
pet pets animal cat cats
dog dogs puppy terrier dachshund spaniel poodle
car vehicle park parking garage
bag bags luggage baggage suitcase
insure insured insurance cover coverage
warranty guarantee
limit most maximum many once
deposit security bond
interest late default
discount reduction reduced rebate off
film films movie movies dvd dvds video
book books novel novels paperback
game games console
shoe shoes boot boots sneaker sneakers
worn used wear
unused new unworn
sale sales clearance outlet reduced discounted
gift voucher present
store shop branch counter
internet web website online app
reply answer respond response write
complain complaint grievance
claim claims
open opening opens
close closing closes shut
speed fast slow slower faster bandwidth
install installation setup connect technician
change modify alter switch move
phone telephone call hotline
breakfast meal lunch dinner
room rooms double suite
medicine medicines drug drugs tablet tablets pill pills prescription drops
refill refills renew repeat
age old older young younger
birthday birth born
file files document documents
ticket tickets seat seats
premium gold plus pro
basic starter free light
""".split("\n")
    if line
)

# Everyday turns of phrase, and the word that policies have for them.
IDIOMS: Final = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"\b(?:can|may|could|do|should|must|to) (?:i|we)? ?keep\b", "borrow"),
        (r"\b(?:you|they|shop|desk|counter) (?:keep|hold|reserve)\b", "hold"),
        (r"\b(?:tell|inform|let) (?:you|them)\b|\bsay so\b|\b(?:in advance|ahead|beforehand)\b",
         "notice"),
        (r"\bbefore (?:i|we) get\b|\bmy turn\b", "waiting"),
        (r"\bchange(?:d)? (?:my|our) minds?\b|\bpull out\b", "withdraw"),
        (r"\b(?:send|sent|bring|brought|give|given|take|taken|ship|shipped|hand) "
         r"(?:it|them|this|these|one)? ?back\b", "return"),
        (r"\bmoney (?:back|return\w*)\b|\bget (?:my|our|the) money\b", "refund"),
        (r"\btied (?:down|in|up)\b|\block(?:ed)? in\b", "bound"),
        (r"\bworks? again\b|\bback up\b", "repair"),
        (r"\bon hold\b|\btake a break\b", "pause"),
        (r"\bput (?:it |them )?aside\b|\bset aside\b", "hold"),
        (r"\b(?:hang|hold) on to\b", "keep"),
        (r"\b(?:be|get|come) there\b|\b(?:turn|show) up\b", "arrive"),
        (r"\bleft (?:my|our|his|her|a|an|the)\b|\bleft behind\b", "lost"),
        (r"\blook after\b|\btake care of\b", "store"),
        (r"\bget in\b|\blet in\b", "entry"),
        (r"\bhad enough\b|\bstop being\b|\bget (?:out|rid)\b|\bgive up\b", "terminate"),
    )
)  # fmt: skip

# Cases that exclude one another: who is an adult is no child.
ANTONYMS: Final = tuple(
    tuple(pair.split(":"))
    for pair in (
        "adult:child new:used new:refurbished weekday:weekend domestic:abroad "
        "domestic:international "
        "paper:electronic paper:email paper:online private:business private:company member:guest "
        "ordinary:special standard:express day:night summer:winter hot:cold warm:cold small:large "
        "small:big single:group couple:group alone:group indoor:outdoor inside:outside "
        "morning:evening buyer:seller monthly:annual "
        "成人:儿童 成人:少儿 大人:孩子 工作日:周末 平日:周末 白天:夜间 白天:晚上 "
        "国内:国外 省内:省外 "
        "市内:市外 本市:外地 纸质:电子 个人:单位 个人:企业 普通:特快 普通:加急 新客:老客"
    ).split()
)

CHINESE: Final = tuple(
    line.split()
    for line in """
维修 修理 修复 故障 坏了 报修 抢修 修好 检修
丢失 遗失 丢了 弄丢 找不到 丢件 挂失 不见
损坏 破损 摔坏 弄坏 碎了 坏了
赔付 赔偿 赔多少 理赔 赔 补偿
退货 退回 退掉 退换 不想要
退票 能退 退的话 要退 想退
手续费 扣多少 扣百分 扣几 要扣 扣不扣 扣钱 扣款 退票费 服务费
押金 保证金 押多少
练车 练多久 每次能练 学时
退款 退钱 到账 退还 返还
换货 换票 换开 更换 换一 换成 能换 调换
送达 送到 配送 派送 到货 能到 寄到 收到 时效 多久到 几天到
邮寄 寄送 寄出 快递费 运费 邮费 寄过来 寄给 寄到
寄件 寄出 寄了 寄的 发出 发货
保管 代存 存放 存几 寄存 驿站 自提 保留 取件 能取 来取
取消 退订 撤单 不去了 不来了
预约 预订 预定 订位
续借 续期 续费 续签 延长 展期
借阅 借期 借多久 借几 借书 外借
逾期 超期 过期 晚还 迟还 滞纳 超时 晚了 晚一点 晚点 迟退 迟到 延时 拖延
罚款 滞纳金 违约金 罚金 罚多少
押金 保证金
移机 搬家 搬迁 迁移 换地方 搬到
暂停 冻结 停卡 停用 请假 休会
会员 入会 办卡 会籍
终止 解约 退会 解除 不做了 注销
通知 提前 预先
优惠 折扣 打折 几折 便宜
积分 点数
有效期 过期 失效 有效 能用多久 用多久
升级 升到
电子 邮箱 电邮 线上 网上
纸质 纸的 纸版 实体
普通 一般 标准 平邮 常规
特快 加急 急件 快件 最快 加快
省内 本省 同省
省外 外省 跨省 别的省
市内 本市 同城
国外 海外 境外 出国 国际
国内 境内
个人 私人 自己
单位 公司 企业 对公
学生 大学生 在校 上学 读书
老人 老年 长者 退休
儿童 孩子 小孩 小朋友 未成年
成人 大人 成年
家庭 一家 全家
团体 团队 集体 多人
首次 第一次 头一次 新客
早餐 早饭
宠物 狗 犬
宠物 猫
停车 车位 泊车
开票 开发票 申请发票 开具 可以申请
发票 抬头 税号
保价 保险 投保
安装 装机 上门
带宽 网速 速度
最低 至少 最少 合约 合同期 在网
最多 最高 上限 封顶 几件 几本 几个
客服 回复 答复 投诉 处理
到店 门店 店里
入住 办理入住 几点到
退房 离店
生日 出生
重考 补考 没过 挂科
反悔 冷静 后悔 退费
成人 大人 成年人
金卡 高级 尊享
银卡 初级 基础
药品 药 处方
生鲜 冷藏 冷链 冰
""".split("\n")
    if line
)
